"""A server that ignores conditions, or lets two writers win, gets no lock."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from safewriter.coordination import probe
from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.errors import UnsupportedError
from soal.testing.s3 import Match, Reply, Request, Rule
from tests.support.contenders import Wrapped
from tests.support.lock_services import S3, DynamoDB

if TYPE_CHECKING:
    from safewriter.coordination.backend import Stored
    from safewriter.coordination.record import Record
    from soal.testing.s3.rules import Effect
    from tests.support.lock_arena import Arena

IF_MATCH, IF_NONE_MATCH = "HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"


class TwoWin(Wrapped):
    """Lets two writers replace one version, or create one record: the first, and the `other`-th."""

    def __init__(self, *, creating: bool, other: int) -> None:
        super().__init__(MemoryBackend(), lambda _, request: request(), server="two-win")
        self._creating, self._other = creating, other
        self._guard = threading.Lock()
        self._won: dict[object, int] = {}

    def write(self, record: Record, after: Stored | None) -> Stored:
        version = None if after is None else after.version
        with self._guard:
            if (after is None) is self._creating:
                self._won[version] = self._won.get(version, 0) + 1
                if self._won[version] == self._other:
                    return super().write(record, super().read(record.lock))
            return super().write(record, after)


def ignoring(header: str) -> Effect:
    """Apply a write without its condition."""

    def act(request: Request) -> Reply:
        if request.operation == "PutItem":
            asked = json.loads(request.body())
            wanted = "attribute_not_exists" if header == IF_NONE_MATCH else ":after"
            if wanted in asked["ConditionExpression"]:
                for key in [key for key in asked if key.startswith(("Condition", "Expression"))]:
                    del asked[key]
                request._body = json.dumps(asked).encode()
        request.environ.pop(header, None)
        return request.apply()

    return act


@pytest.mark.parametrize("header", [IF_MATCH, IF_NONE_MATCH])
def test_a_server_that_ignores_a_condition_is_refused(on_wire: Arena, header: str) -> None:
    """The server is refused before anything is locked, so there is no record afterwards."""
    assert isinstance(on_wire.service, S3 | DynamoDB)
    on_wire.service.server.wire.add(Rule(Match(), ignoring(header), times=None))

    with pytest.raises(UnsupportedError, match="cannot keep a lock"):
        on_wire.coordinator("job").lock()

    assert on_wire.service.observer().read("table") is None


@pytest.mark.parametrize(
    ("creating", "other", "problem"),
    [
        (True, 2, "2 of 8 writers created one"),
        (True, 9, "it creates a record that is there"),
        (False, 2, "2 of 8 writers"),
        (False, 9, "it replaces a record that has changed"),
    ],
)
def test_a_server_that_lets_two_win_is_refused(*, creating: bool, other: int, problem: str) -> None:
    """Of eight simultaneous writers, or the ninth, which comes later."""
    with pytest.raises(UnsupportedError, match=problem):
        probe.check(TwoWin(creating=creating, other=other))


def test_jobs_that_probe_at_the_same_time_do_not_refuse_the_server(on_wire: Arena) -> None:
    """Another job may win a round."""
    backend = on_wire.service.backend()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(probe.check, backend) for _ in range(4)]:
            done.result()
