"""The handler's store of run records: attempts, leases, waiting for a living attempt, and cancellation."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from handler.input_errors import InputError
from handler.request.job import Job, requested
from handler.runs.store import AttemptRunningError, Runs, UnreadableRecordError
from handler.settings import read_settings
from safewriter.deadline import Deadline
from safewriter.objects import StoreError
from safewriter.objects.store import TooLarge
from safewriter.schedule import Schedule
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = read_settings({"SW_CHECKPOINT_BUCKET": "checkpoints"})
RECORD = "runs/"


def job(**fields: Any) -> Job:
    return requested({"script": "s3://scripts/a.py", "clientToken": "t", **fields}, SETTINGS, "r").job


class Time:
    """A clock for the store and the test; sleeping advances it, and lets the other attempt act."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.while_asleep: Callable[[], object] = lambda: None

    def __call__(self) -> int:
        return self.now_ms

    def date(self) -> datetime:
        return datetime.fromtimestamp(self.now_ms / 1000, UTC)

    def sleep(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)
        self.while_asleep()


class Bench:
    def __init__(self) -> None:
        self.time = Time()
        self.store = MemoryObjectStore(self.time.date)
        self.runs = Runs(self.store, self.time, self.time.sleep)

    def begin(self, run_id: str, the_job: Job | None = None, total_ms: int = 300_000, code: str | None = "code") -> Any:
        deadline = Deadline(self.time() + total_ms, self.time(), self.time)
        schedule = Schedule.of(deadline, 0)
        return self.runs.begin(the_job or job(), code=code, run_id=run_id, request_id="q", schedule=schedule)

    def key(self) -> str:
        (key,) = [listed.key for listed in self.store.list(RECORD)]
        return key

    def record(self) -> dict[str, Any]:
        stored = self.store.get(self.key())
        assert stored is not None
        return dict(json.loads(stored.body))


def test_the_first_attempt() -> None:
    """It is recorded before anything runs."""
    bench = Bench()
    bench.begin("one")
    record = bench.record()
    assert (record["runKey"], record["attempt"], record["runId"], record["state"]) == ("t", 1, "one", "RUNNING")
    assert record["previousRunId"] is None
    assert record["resultUri"] == "s3://memory/results/one/run_result.json"


def test_the_end_and_the_next_attempt() -> None:
    """The state is the last attempt's; the next one increments the number, and an old lease does not delay it."""
    bench = Bench()
    first = bench.begin("one")
    bench.runs.renew_lease(first)
    assert bench.runs.end(first, state="TIMED_OUT") == ()
    assert len(list(bench.store.list("leases/"))) == 1
    assert (bench.record()["state"], bench.record()["endedMs"]) == ("TIMED_OUT", 1_000_000)
    second = bench.begin("two").record
    assert (second.attempt, second.previous_run_id) == (2, "one")


def test_the_same_token_with_another_job_is_a_usage_error() -> None:
    """The error names the token; the record stays unchanged."""
    bench = Bench()
    bench.runs.end(bench.begin("one"), state="SUCCESS")
    before = bench.record()
    with pytest.raises(InputError) as caught:
        bench.begin("two", job(entryPointArguments=["other"]))
    assert caught.value.field == "clientToken"
    assert bench.record() == before


def test_a_killed_attempt_may_have_committed() -> None:
    """It has reported nothing, so another script needs the owner's permission; an attempt that fetched no script proves
    nothing about one.
    """
    bench = Bench()
    bench.begin("one")
    bench.time.now_ms += 30_000
    with pytest.raises(InputError, match="may have, committed writes"):
        bench.begin("two", code="mended")
    assert bench.begin("two", code=None).record.code == "code"
    bench.time.now_ms += 30_000
    run = bench.begin("three", job(acceptChangedScript=True), code="mended")
    assert (run.record.code, run.has_other_code) == ("mended", True)
    bench.runs.end(run, state="FAILED", may_hold_writes=False)
    for code in ("code", "mended", "again"):
        with pytest.raises(InputError):
            bench.begin("four", code=code)
    assert not bench.begin("four", job(acceptChangedScript=True), code="mended").has_other_code


def test_a_record_without_the_code_asks_for_no_word() -> None:
    """An older version did not keep it, so there is nothing to compare."""
    bench = Bench()
    bench.runs.end(bench.begin("one", code=None), state="FAILED")
    run = bench.begin("two", code="code")
    assert (run.record.code, run.has_other_code) == ("code", False)


def test_a_live_attempt_is_not_joined() -> None:
    """As soon as its lease moves, the second delivery gives up."""
    bench = Bench()
    run = bench.begin("one")
    bench.time.while_asleep = lambda: bench.runs.renew_lease(run)
    began = bench.time()
    with pytest.raises(AttemptRunningError, match="attempt 1"):
        bench.begin("two")
    assert bench.time() - began <= 3_000
    assert bench.record()["runId"] == "one"


def test_a_dead_attempt_is_followed_once_its_lease_has_lapsed() -> None:
    """The limit is twenty seconds without a sign of life, by the store's own clock."""
    bench = Bench()
    bench.runs.renew_lease(bench.begin("one"))
    began = bench.time()
    assert bench.begin("two").record.attempt == 2
    assert 20_000 < bench.time() - began < 25_000


def test_a_second_delivery_waits_within_its_own_time() -> None:
    """With little time left it says "try again" instead of waiting for the lease."""
    bench = Bench()
    bench.begin("one")
    with pytest.raises(AttemptRunningError):
        bench.begin("two", total_ms=10_000)


def test_an_attempt_that_ends_meanwhile_is_followed_at_once() -> None:
    """The waiting attempt sees that the record has changed, and does not wait for the lease to expire."""
    bench = Bench()
    run = bench.begin("one")
    bench.time.while_asleep = lambda: bench.runs.end(run, state="FAILED") if bench.time() < 1_002_000 else None
    assert bench.begin("two").record.previous_run_id == "one"
    assert bench.time() < 1_005_000


def test_an_attempt_long_past_its_deadline_is_dead_whatever_its_lease_says() -> None:
    """A lease is only for politeness."""
    bench = Bench()
    run = bench.begin("one", total_ms=10_000)
    bench.time.now_ms += 75_000
    bench.runs.renew_lease(run)
    assert bench.begin("two").record.attempt == 2


def test_a_late_end_does_not_overwrite_a_later_attempt() -> None:
    """The record stays the later attempt's; the other one only warns."""
    bench = Bench()
    first = bench.begin("one")
    bench.time.now_ms += 30_000
    bench.begin("two")
    assert bench.runs.end(first, state="SUCCESS") != ()
    assert (bench.record()["runId"], bench.record()["state"]) == ("two", "RUNNING")


def test_a_record_that_cannot_be_read_stops_everything() -> None:
    """It may be a newer version's."""
    bench = Bench()
    bench.begin("one")
    (key,) = [listed.key for listed in bench.store.list(RECORD)]
    bench.store.put(key, b'{"schemaVersion": 2}')
    with pytest.raises(StoreError, match="this version"):
        bench.begin("two")


def test_a_request_to_cancel_is_for_one_attempt() -> None:
    """That attempt's handler sees it; the next attempt under the same key does not."""
    bench = Bench()
    first = bench.begin("one")
    assert not bench.runs.is_cancelled(first.record)
    bench.runs.request_cancel(first.record, "wrong table")
    assert bench.runs.is_cancelled(first.record)
    bench.runs.end(first, state="CANCELLED")
    assert not bench.runs.is_cancelled(bench.begin("two").record)


def test_a_record_is_read_from_outside_with_what_can_be_seen_of_its_attempt() -> None:
    """It is read by key or from the list, None if there is none; a silent attempt shows as dead."""
    bench = Bench()
    bench.begin("one")
    found = bench.runs.read("t")
    assert found is not None
    assert (found.record.run_id, found.sighting.is_dead) == ("one", False)
    bench.time.now_ms += 21_000
    (again,) = [bench.runs.read_listed(listed) for listed in bench.runs.listed()]
    assert again is not None
    assert again.sighting.is_dead
    assert bench.runs.read("another") is None


def test_of_two_attempts_that_find_the_same_dead_one_only_one_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one waits until the first one's lease is over."""
    bench = Bench()
    bench.runs.end(bench.begin("one"), state="FAILED")
    get = bench.store.get

    def another_was_faster(key: str, **bound: Any) -> Any:
        found = get(key, **bound)
        monkeypatch.setattr(bench.store, "get", get)
        bench.begin("two")
        return found

    monkeypatch.setattr(bench.store, "get", another_was_faster)
    began_ms = bench.time()
    assert bench.begin("three", total_ms=600_000).record.attempt == 3
    assert bench.time() > began_ms


def test_a_record_that_goes_meanwhile_starts_no_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is unknown; the next invocation creates a record."""
    bench = Bench()
    bench.begin("one")
    monkeypatch.setattr(bench.store, "get", lambda _, **__: None)
    with pytest.raises(StoreError, match="was there, and is gone"):
        bench.begin("two")


@pytest.mark.parametrize("folder", ["runs/", "leases/", "cancels/"])
def test_an_object_without_end_is_not_read_into_memory(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """A record of such a size cannot be read, a request to cancel counts, and a lease is an error."""
    bench = Bench()
    run = bench.begin("one")
    bench.runs.request_cancel(run.record, "why")
    bench.runs.renew_lease(run)
    get, bounds = bench.store.get, []

    def large(key: str, *, max_bytes: int | None = None) -> Any:
        assert max_bytes is not None
        if not key.startswith(folder):
            return get(key, max_bytes=max_bytes)
        bounds.append(max_bytes)
        raise TooLarge(bench.store.uri(key), max_bytes + 1, max_bytes)

    monkeypatch.setattr(bench.store, "get", large)
    if folder != "cancels/":
        with pytest.raises(UnreadableRecordError if folder == "runs/" else TooLarge, match="more than the"):
            bench.runs.read(run.record.run_key)
    assert bench.runs.is_cancelled(run.record)
    assert bounds
