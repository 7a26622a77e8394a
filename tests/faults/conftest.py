"""Victims that are warm before they are needed, and a session that survives them all and judges."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from safewriter.deadline import epoch_ms
from tests.support.lake import CHECKPOINTS, Lake
from tests.support.processes import Child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scripts.emulator.s3 import EmbeddedS3

DEADLINE_MS = 900_000


class Victims:
    """A pool of one: while a victim is being judged, the next one warms up."""

    def __init__(self, s3: EmbeddedS3) -> None:
        self._environment = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
        self._next: Child | None = None

    def take(self) -> Child:
        """Return a victim that waits for its order."""
        child = self._next or self._start()
        child.expect("ready")
        self._next = self._start()
        return child

    def close(self) -> None:
        if self._next is not None:
            self._next.kill()

    def _start(self) -> Child:
        # Each has its own: the whole matrix takes longer than a deadline is away.
        deadline = {"SOAL_DEADLINE_EPOCH_MS": str(epoch_ms() + DEADLINE_MS)}
        return Child("tests.faults.victim", environment={**self._environment, **deadline})


@pytest.fixture(scope="session")
def victims(s3: EmbeddedS3) -> Iterator[Victims]:
    pool = Victims(s3)
    yield pool
    pool.close()


@pytest.fixture
def victim(victims: Victims, s3: EmbeddedS3) -> Iterator[Child]:
    child = victims.take()
    s3.wire.clear_rules()
    with child:
        yield child
    s3.wire.clear_rules()


@pytest.fixture
def run_key(s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The run that victim and retry share. The store's clock is the test's: it runs ahead once the victim is dead."""
    key = f"fault-{uuid.uuid4().hex}"
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", CHECKPOINTS)
    monkeypatch.setenv("SOAL_RUN_KEY", key)
    yield key
    s3.wire.clock_ahead_s = 0


@pytest.fixture
def lake(s3: EmbeddedS3) -> Callable[[], Lake]:
    return lambda: Lake(s3.observer(), s3.endpoint, f"tables/{uuid.uuid4().hex}")
