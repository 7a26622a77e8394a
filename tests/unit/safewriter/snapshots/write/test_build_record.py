"""A running build of a snapshot renews its record's lease, and records its end, whatever the store does."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.objects.store import PreconditionFailed, StoreError
from safewriter.snapshots.config import WriteConfig
from safewriter.snapshots.settle.leftovers import BuildId
from safewriter.snapshots.write.build_record import BuildRecord
from tests.support.memory_store import MemoryObjectStore
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MINUTE = timedelta(minutes=1)


class Store(MemoryObjectStore):
    """A bucket whose next writes do not land (`refused`), have no answer (`lost`), or land late (`late`)."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.late: list[Callable[[], str]] = []
        self.renewals = 0

    def create(self, key: str, body: bytes, *, tag: str = "") -> str:
        return self._faulty(lambda: super(Store, self).create(key, body, tag=tag))

    def replace(self, key: str, body: bytes, *, etag: str, tag: str = "") -> str:
        written = self._faulty(lambda: super(Store, self).replace(key, body, etag=etag, tag=tag))
        self.renewals += 1
        return written

    def _faulty(self, write: Callable[[], str]) -> str:
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "late":
            self.late.append(write)
        written = "" if fault in {"late", "refused"} else write()
        if fault:
            raise StoreError("no answer")
        return written

    def record(self) -> dict[str, Any]:
        (listed,) = self.list("runs/")
        found = self.get(listed.key)
        assert found is not None
        record: dict[str, Any] = json.loads(found.body)
        return record


class Clock:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    """Check that the thread of a record ends with it."""
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name == "soal-build-record"] == []


def record_of(store: Store, clock: Clock, beat_s: float = 3600) -> BuildRecord:
    config = WriteConfig(num_dbs=1, s3_prefix="s3://lake/p")
    return BuildRecord(store, BuildId.draw("r", "shards", "runs", clock.now), config, now=clock, beat_s=beat_s)


def test_a_run_is_recorded_while_it_runs_and_when_it_ends(store: Store, clock: Clock) -> None:
    """The record has a lease of ten minutes, and later the manifest; there is one record."""
    with record_of(store, clock) as record:
        running = store.record()
        clock.now += MINUTE
        record.published("s3://lake/p/manifest")
    ended = store.record()
    assert (running["status"], running["started_at"]) == ("running", "2026-01-01T00:00:00.000000Z")
    assert (running["lease_expires_at"], running["manifest_ref"]) == ("2026-01-01T00:10:00.000000Z", None)
    assert (ended["status"], ended["manifest_ref"]) == ("succeeded", "s3://lake/p/manifest")
    assert ended["lease_expires_at"] == ended["updated_at"] == "2026-01-01T00:01:00.000000Z"
    assert ended["started_at"] == running["started_at"]
    assert record.ref == store.uri(next(iter(store.list("runs/"))).key)


def test_a_run_that_fails_is_recorded_with_its_error(store: Store, clock: Clock) -> None:
    """The run's error propagates."""
    with pytest.raises(KeyError), record_of(store, clock):
        raise KeyError("no such column")
    ended = store.record()
    assert (ended["status"], ended["error_type"]) == ("failed", "KeyError")
    assert (ended["error_message"], ended["manifest_ref"]) == ("'no such column'", None)


def test_a_heartbeat_renews_the_lease(store: Store, clock: Clock) -> None:
    """Heartbeats repeat, also after one that failed."""
    store.faults = ["", "refused", "lost"]
    with record_of(store, clock, beat_s=0.001):
        clock.now += 5 * MINUTE
        assert until(lambda: store.renewals >= 3)
        assert store.record()["lease_expires_at"] == "2026-01-01T00:15:00.000000Z"
    assert store.record()["status"] == "succeeded"


def test_a_late_heartbeat_does_not_overwrite_the_end(store: Store, clock: Clock) -> None:
    """The store refuses a heartbeat that was in flight when the run ended."""
    store.faults = ["", "late"]
    with record_of(store, clock, beat_s=0.001):
        assert until(lambda: bool(store.late))
    with pytest.raises(PreconditionFailed):
        store.late[0]()
    assert store.record()["status"] == "succeeded"


@pytest.mark.parametrize("faults", [["refused"], ["lost"], ["", "refused"]])
def test_a_store_that_fails_does_not_fail_the_run(
    store: Store, clock: Clock, faults: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The error is logged. A record that may not have been written has no `ref`."""
    store.faults = list(faults)
    with record_of(store, clock) as record:
        pass
    assert (record.ref is None) == (faults[0] != "")
    assert len(caplog.records) == 1


def test_a_record_that_somebody_deleted_stays_away(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The run ends as without the deletion."""
    with record_of(store, clock):
        store.delete(next(iter(store.list("runs/"))).key)
    assert list(store.list("runs/")) == []
    assert "was not renewed: it is not there any more" in caplog.text


def test_a_record_that_never_stands_still_is_left(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The run ends as without the conflict."""

    def raced(*_: object, **__: object) -> str:
        raise PreconditionFailed("record")

    with record_of(store, clock):
        monkeypatch.setattr(store, "replace", raced)
    assert "was not renewed: it changes faster than it can be written" in caplog.text
