"""One event that is delivered twice at once, to two processes: the table holds the batch once, whoever wrote it."""

from __future__ import annotations

import json
import signal
import uuid
from typing import TYPE_CHECKING

import pytest

from safewriter.errors import AnotherAttemptError
from soal.testing.s3.rules import Match, Rule
from tests.faults.delta_case import DeltaCase
from tests.faults.iceberg_case import IcebergCase
from tests.faults.victims import Victims
from tests.support.attempts import next_attempt
from tests.support.lake import Lake
from tests.support.network_faults import Late
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.faults.case import Case
    from tests.support.ice import Catalog
    from tests.support.processes import Child

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.matrix, pytest.mark.timeout(600)]

DATA = Match(operations={"PutObject"}, key_class="data")
COMMITS = Match(operations={"PutObject"}, key=r"_delta_log/.*\.json|\.metadata\.json")
CLAIM = Match(operations={"PutObject"}, key_class="checkpoint")


class Twice:
    """A case, and another process with the same order."""

    def __init__(self, case: Case, other: Child, run_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.case, self.other, self._run_key, self._monkeypatch = case, other, run_key, monkeypatch
        self.before = len(case.table.history())

    def hold(self, match: Match, nth: int, *, end: Callable[[], None] | None = None) -> Late:
        """Let the other process run up to the request, which stays pending."""
        late = Late(then="waits", end=end)
        rule = self.case.s3.wire.add(Rule(match, late, nth=nth))
        self.other.tell(self.case.order(self._run_key))
        assert until(lambda: rule.hits == 1), self.other.said()
        return late

    def check(self) -> None:
        """Check that the other process ends well, too, and that a third delivery finds the write committed."""
        assert self.other.end() == 0, self.other.said()
        assert "acknowledged" in self.other.lines
        next_attempt(self._monkeypatch)
        assert self.case.write_again().already_committed
        self.case.check()
        assert self.case.table.document().status == "committed"
        assert len(self.case.table.history()) == self.before + 1


@pytest.fixture(scope="module", params=["delta", "lite", "rest"])
def writers(
    spark: SparkSession, s3: EmbeddedS3, request: pytest.FixtureRequest
) -> Iterator[tuple[Callable[[], Case], Victims]]:
    """Yield a factory of cases and the processes that get the same order; `lite` and `rest` are catalogs of Iceberg."""
    if request.param == "delta":
        pool = Victims(s3, "tests.faults.victim")
        yield (
            lambda: DeltaCase(spark, s3, Lake(s3.observer(), s3.endpoint, f"tables/{uuid.uuid4().hex}"), "append"),
            pool,
        )
    else:
        catalog: Catalog = request.getfixturevalue(request.param)
        pool = Victims(s3, "tests.faults.iceberg_victim", json.dumps(catalog.settings()))
        yield lambda: IcebergCase(spark, s3, catalog, "append"), pool
    pool.close()


@pytest.fixture
def twice(
    writers: tuple[Callable[[], Case], Victims], s3: EmbeddedS3, run_key: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Twice]:
    make, pool = writers
    with pool.take() as other:
        yield Twice(make(), other, run_key, monkeypatch)
    s3.wire.clear_rules()


@pytest.mark.parametrize("place", ["while it writes", "while it commits"])
def test_who_comes_second_says_try_again_and_changes_nothing(twice: Twice, place: str) -> None:
    """The first process lives, as its lease shows, and continues as if it were alone."""
    held = twice.hold(DATA if place == "while it writes" else COMMITS, 1)
    with pytest.raises(AnotherAttemptError, match="is alive"):
        twice.case.write_again()
    held.release()
    twice.check()


def test_of_two_that_claim_at_once_one_writes_and_the_other_skips(twice: Twice) -> None:
    """The claim of one process is pending during the other's whole write; it stands still, or it would ask again."""
    held = twice.hold(CLAIM, 1, end=lambda: twice.other.signal(signal.SIGSTOP))
    assert not twice.case.write_again().already_committed
    assert [reply.status for reply in held.release()] == [412]
    twice.other.signal(signal.SIGCONT)
    twice.check()
