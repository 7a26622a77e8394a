"""`soal runs watch` tells each change of the checkpoint bucket once, and reads only recent objects again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.settle.recovery import Cause
from soal.runs.watching import Watcher
from tests.unit.soal.runs.test_ledger import Bench

if TYPE_CHECKING:
    from safewriter.objects import StoredObject


def states(watcher: Watcher) -> list[tuple[str, str, int]]:
    return [(event.kind, event.state, event.attempt) for event in watcher.look()]


def test_each_change_is_told_once() -> None:
    """The first look returns everything, each later one only changes."""
    bench = Bench()
    watcher = Watcher(bench.ledger)
    assert states(watcher) == []
    run = bench.begin()
    bench.world.sleep(1)
    bench.world.job().begin()
    assert states(watcher) == [("run", "RUNNING", 1), ("write", "in_progress", 1)]
    assert states(watcher) == []
    bench.world.settle(Cause.KILLED)
    bench.world.sleep(1)
    bench.records.end(run, state="FAILED")
    assert states(watcher) == [("write", "rolled_back", 1), ("run", "FAILED", 1)]
    assert states(watcher) == []


def test_what_changes_twice_within_a_second_is_seen() -> None:
    """Two changes within a second are both seen, although S3 dates have whole seconds."""
    bench = Bench()
    watcher = Watcher(bench.ledger)
    job = bench.world.job().begin()
    assert states(watcher) == [("write", "in_progress", 1)]
    assert job.commit()
    assert job.success()
    assert states(watcher) == [("write", "committed", 1)]


def test_a_second_attempt_that_ends_as_the_first_is_news() -> None:
    """A second attempt that ends like the first one is a change."""
    bench = Bench()
    watcher = Watcher(bench.ledger)
    bench.world.job().begin()
    bench.world.settle(Cause.KILLED)
    assert states(watcher) == [("write", "rolled_back", 1)]
    bench.world.job().begin()
    bench.world.settle(Cause.KILLED)
    (event,) = watcher.look()
    assert (event.state, event.attempt, event.run_key) == ("rolled_back", 2, "run")
    assert event.reason == "killed: no commit of this write is in the table"


def test_only_what_is_recent_is_read_again() -> None:
    """A look costs a listing, and a read of each object as new as the newest of the look before."""
    bench = Bench()
    watcher = Watcher(bench.ledger)
    for number in range(2):
        bench.begin(f"run-{number}", f"id-{number}")
        bench.world.sleep(10)
    watcher.look()
    bench.begin("run-2", "id-2")
    reads: list[str] = []
    read = bench.records.store.get

    def counted(key: str, **_: object) -> StoredObject | None:
        reads.append(key)
        return read(key)

    bench.world.bucket.get = counted  # type: ignore[method-assign]
    assert [event.run_key for event in watcher.look()] == ["run-2"]
    assert len([key for key in reads if key.startswith("runs/")]) == 2


def test_documents_of_another_version_are_passed_over() -> None:
    """Documents of another version are skipped, so that a newer function does not end the watch."""
    bench = Bench()
    bench.world.bucket.put("checkpoints/sw-new.json", b'{"schema_version": 99}')
    bench.world.bucket.put("runs/new.json", b'{"schemaVersion": 99}')
    assert states(Watcher(bench.ledger)) == []


def test_it_follows_until_its_time_is_over() -> None:
    """It sleeps between two looks, until its time is over; earlier states are shown only on request."""
    bench = Bench()
    bench.world.job().begin()
    seconds = 0.0

    def sleep(pause_s: float) -> None:
        nonlocal seconds
        seconds += pause_s
        if seconds == 10:
            bench.world.settle(Cause.KILLED)

    def told(*, past: bool) -> list[str]:
        nonlocal seconds
        seconds = 0.0
        watcher = Watcher(bench.ledger)
        events = watcher.follow(past=past, every_s=10, for_s=25, sleep=sleep, now_s=lambda: seconds)
        return [event.state for event in events]

    assert told(past=False) == ["rolled_back"]
    assert seconds == 25
    assert told(past=True) == ["rolled_back"]
