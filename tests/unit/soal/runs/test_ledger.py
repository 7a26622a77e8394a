"""`soal runs` combines run records and documents: signs of life, states, newest first, damaged ones named."""

from __future__ import annotations

import json
import weakref
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from handler.request.job import requested
from handler.runs.store import Runs, result_key
from handler.settings import read_settings
from safewriter.deadline import Deadline
from safewriter.identity import Attempt, Run
from safewriter.record.checkpoints import StoredCheckpoint
from safewriter.record.document import CommitPoint
from safewriter.record.marker import Marker
from safewriter.schedule import Schedule
from soal.runs import ledger
from soal.runs.ledger import Ledger
from soal.runs.watching import Watcher
from tests.unit.safewriter.record.samples import named
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from handler.runs.store import OpenRun

SETTINGS = read_settings({"SW_CHECKPOINT_BUCKET": "checkpoints"})


class Bench:
    """A checkpoint bucket with the writes of one run ("run"), and the records of handlers."""

    def __init__(self, commit_point: CommitPoint = CommitPoint.WRITE) -> None:
        self.world = World(commit_point)
        self.ledger = Ledger(self.world.bucket, self.world.clock)
        self.records = Runs(self.world.bucket, self.world.clock, self.world.sleep)

    def begin(self, run_key: str = "run", run_id: str = "one") -> OpenRun:
        event = {"script": "s3://scripts/a.py", "clientToken": run_key, "name": "nightly"}
        job = requested(event, SETTINGS, "r").job
        deadline = Deadline(self.world.now_ms + 600_000, self.world.now_ms, self.world.clock)
        return self.records.begin(job, run_id=run_id, request_id="q", schedule=Schedule.of(deadline, 0))


def test_a_run_with_its_writes() -> None:
    """A run combines the handler's record with the documents of its writes."""
    bench = Bench()
    run = bench.begin()
    assert bench.world.job().run()
    bench.records.end(run, state="SUCCESS")

    (found,) = bench.ledger.runs(10).runs

    assert (found.run_key, found.name, found.state, found.attempt, found.life) == ("run", "nightly", "SUCCESS", 1, None)
    (write,) = found.writes
    assert (write.status, write.version, write.rows, write.life) == ("committed", 2, None, None)
    assert write.checkpoint.endswith(f"checkpoints/{bench.world.key}.json")
    assert bench.ledger.run("run") == (found, [])


def test_live_or_dead_and_why() -> None:
    """For an open run or write the last sign of life is given, by S3's clock."""
    bench = Bench()
    run = bench.begin()
    job = bench.world.job().begin()
    bench.world.sleep(5)

    (alive,) = bench.ledger.runs(10).runs
    assert (alive.life, alive.why) == ("alive", "a sign of life 5 s ago")
    assert (alive.writes[0].life, alive.writes[0].why) == ("alive", "a sign of life 5 s ago")

    bench.world.sleep(30)
    bench.records.renew_lease(run)
    bench.world.sleep(1)
    (one,) = bench.ledger.runs(10).runs
    assert (one.life, one.why) == ("alive", "a sign of life 1 s ago")
    assert (one.writes[0].life, one.writes[0].why) == ("dead", "no sign of life for 36 s")

    bench.world.grace_passes()
    job.checkpoints.renew_lease(bench.world.key, job.attempt.nonce)
    bench.records.renew_lease(run)
    (over,) = bench.ledger.runs(10).runs
    assert (over.life, over.why) == ("dead", "its deadline and the grace after it are over")
    assert over.writes[0].life == "dead"


def test_a_run_without_a_handler_is_known_by_its_writes() -> None:
    """A run without a record, as of a job on a cluster, is known by its writes, and alive if one of them is."""
    bench = Bench()
    bench.world.job().begin()
    found, _ = bench.ledger.run("run")
    assert found is not None
    assert (found.state, found.attempt, found.life) == (None, None, "alive")
    assert [write.status for write in found.writes] == ["in_progress"]
    assert bench.ledger.run("another") == (None, [])


@pytest.mark.parametrize(
    ("state", "found"),
    [("rolled_back", True), ("running", True), ("alive", True), ("committed", False), ("success", False)],
)
def test_a_state_is_a_runs_or_a_writes_or_its_life(state: str, *, found: bool) -> None:
    """A state filters runs, writes or signs of life, in lower case."""
    bench = Bench()
    bench.begin()
    bench.world.job().begin()
    bench.world.settle()
    (run,) = bench.ledger.runs(10).runs
    assert run.has(frozenset({state})) is found
    assert run.has(frozenset())


def test_the_newest_come_first_and_only_so_many_are_read() -> None:
    """The newest runs come first, and the limit bounds the reads; the listing says if documents were left out."""
    bench = Bench()
    for number in range(9):
        bench.begin(f"run-{number}", f"id-{number}")
        bench.world.sleep(1)
    reads: list[str] = []
    get = bench.world.bucket.get

    def counted(key: str, **_: Any) -> Any:
        reads.append(key)
        return get(key)

    bench.world.bucket.get = counted  # type: ignore[method-assign]
    assert [run.run_key for run in bench.ledger.runs(2).runs] == ["run-8", "run-7"]
    assert len(reads) == 4  # each with its lease
    assert len(bench.ledger.runs(0).runs) == 9


def test_of_many_writes_only_those_of_the_newest_runs_are_read() -> None:
    """Only the documents of the newest runs are read, and the listing says that others were left out."""
    bench = Bench()
    bench.world.job().begin()
    for number in range(9):
        assert bench.world.checkpoints.create(named(bench.world.document, run_key=f"run-{number}"))

    assert not bench.ledger.runs(1).is_whole
    assert not bench.ledger.runs(9).is_whole
    assert bench.ledger.runs(10).is_whole
    assert len(bench.ledger.runs(0).runs) == 10


def test_a_run_is_found_by_its_state_behind_any_number_of_others() -> None:
    """The limit bounds the runs that are shown, and the listing says if others of that state were left out."""
    bench = Bench()
    bench.world.job().begin()
    refused = replace(bench.world.document, undo_refused="rows were added since")
    for run_key in ("first", "second"):
        assert bench.world.checkpoints.create(named(refused, run_key=run_key))
    for number in range(9):
        bench.world.sleep(1)
        bench.begin(f"run-{number}", f"id-{number}")

    one, both = (bench.ledger.runs(limit, frozenset({"undo_refused"})) for limit in (1, 2))

    assert ([run.run_key for run in one.runs], one.is_whole) == (["second"], False)
    assert (sorted(run.run_key for run in both.runs), both.is_whole) == (["first", "second"], True)


def test_documents_of_another_version_are_left_out_and_named() -> None:
    """Documents of another version, of a newer deployment or damaged, are left out and named."""
    bench = Bench()
    bench.world.job().begin()
    bench.world.bucket.put("checkpoints/sw-new.json", b'{"schema_version": 99}')
    bench.world.bucket.put("runs/new.json", b'{"schemaVersion": 99}')
    listing = bench.ledger.runs(10)
    assert len(listing.runs) == 1
    assert [uri.rpartition("/")[2] for uri in listing.unread] == ["sw-new.json", "new.json"]


@pytest.mark.parametrize("name", ["startedMs", "deadlineMs", "endedMs", "attempt"])
@pytest.mark.parametrize("number", [10**23, -(10**17), 10**400])
def test_a_record_with_a_number_that_nobody_can_show_hides_no_other_run(name: str, number: int) -> None:
    """A record with an unprintable number is named as damaged, by list and watch, and hides no other run."""
    bench = Bench()
    bench.begin()
    (stored,) = (one.key for one in bench.world.bucket.list("runs/") if one.key.endswith(".json"))
    found = bench.world.bucket.get(stored)
    assert found is not None
    damaged = json.dumps({**json.loads(found.body), "runKey": "other", name: number}).encode()
    bench.world.bucket.put("runs/damaged.json", damaged)

    listing = bench.ledger.runs(10)

    assert [run.run_key for run in listing.runs] == ["run"]
    assert [uri.rpartition("/")[2] for uri in listing.unread] == ["damaged.json"]
    assert [event.run_key for event in Watcher(bench.ledger).look()] == ["run"]


def test_a_result_of_megabytes_is_named_and_not_read() -> None:
    """Whoever may write results fills no operator's memory, and hides no other run."""
    bench = Bench()
    run = bench.begin()
    bench.records.end(run, state="SUCCESS")
    timings, memory = {"totalMs": 1}, {"limitMb": 512}
    result = {
        "name": None,
        "clientToken": "run",
        "runId": "one",
        "coldStart": False,
        "timings": timings,
        "memory": memory,
    }
    bench.world.bucket.put(result_key("one"), json.dumps({**result, "logTail": "x" * (8 << 20)}).encode())
    (found,) = bench.ledger.runs(10).runs
    assert bench.ledger.last_attempt(found) is None
    assert bench.ledger.attempts(datetime.min.replace(tzinfo=UTC)) == ([], [bench.world.bucket.uri(result_key("one"))])


def test_a_record_with_a_text_that_no_name_has_is_named_as_damaged() -> None:
    """Each text of a record is printed for each run."""
    bench = Bench()
    bench.begin()
    (stored,) = (one.key for one in bench.world.bucket.list("runs/") if one.key.endswith(".json"))
    found = bench.world.bucket.get(stored)
    assert found is not None
    for name, letters in (("longest", 8192), ("long", 8193)):
        body = json.dumps({**json.loads(found.body), "runKey": name, "state": "x" * letters}).encode()
        bench.world.bucket.put(f"runs/{name}.json", body)

    listing = bench.ledger.runs(10)

    assert sorted(run.run_key for run in listing.runs) == ["longest", "run"]
    assert [uri.rpartition("/")[2] for uri in listing.unread] == ["long.json"]


@pytest.mark.parametrize("one_run", [False, True])
def test_documents_are_not_kept(monkeypatch: pytest.MonkeyPatch, *, one_run: bool) -> None:
    """Each may take 24 MB of memory, and there are thousands of them: only their views are kept."""
    bench = Bench()
    bench.world.job().begin()
    for number in range(40):
        assert bench.world.checkpoints.create(named(bench.world.document, step=f"step {number}"))
    alive: list[weakref.ref[StoredCheckpoint]] = []
    most: list[int] = []

    def watched(key: str) -> StoredCheckpoint:
        stored = read(key)
        assert stored is not None
        copy = Watched(stored.document, stored.etag, stored.last_modified, stored.server_date)
        alive.append(weakref.ref(copy))
        most.append(sum(one() is not None for one in alive))
        return copy

    read = bench.ledger.checkpoints.read
    monkeypatch.setattr(ledger, "_PARALLEL", 1)
    monkeypatch.setattr(bench.ledger.checkpoints, "read", watched)

    assert len(bench.ledger.writes("run")[0] if one_run else bench.ledger.runs(0).runs[0].writes) == 41
    assert max(most) <= 3


class Watched(StoredCheckpoint):
    """A document of which a weak reference can be made."""


def test_a_document_of_before_all_moments_hides_no_other_write() -> None:
    """A document with a date before year 1, which Python lacks, is named as damaged, and hides no other write."""
    bench = Bench()
    bench.world.job().begin()
    key = f"checkpoints/{bench.world.key}.json"
    found = bench.world.bucket.get(key)
    assert found is not None
    document = json.loads(found.body)
    document["attempts"][-1]["started_ms"] = -(10**14)
    bench.world.bucket.put("checkpoints/sw-old.json", json.dumps(document).encode())

    listing = bench.ledger.runs(10)

    assert [len(run.writes) for run in listing.runs] == [1]
    assert [uri.rpartition("/")[2] for uri in listing.unread] == ["sw-old.json"]


def announced(bench: Bench, run_key: str, step: str) -> str:
    """Put the marker of a write that has no document; return the write's key."""
    write = replace(bench.world.write, run=Run(run_key, "run-id"), step=step)
    attempt, now_ms = Attempt("a" * 16), bench.world.now_ms
    bench.world.checkpoints.mark(
        Marker.of(write, attempt, CommitPoint.WRITE, started_ms=now_ms, deadline_ms=now_ms + 1)
    )
    return write.key


def test_a_write_is_the_runs_by_its_marker_where_no_document_can_be_read() -> None:
    """A missing document, and a damaged one, are no evidence that there is no such write; only the damaged is named."""
    bench = Bench()
    bench.world.job().begin()
    missing, damaged, of_other = announced(bench, "run", "a"), announced(bench, "run", "b"), announced(bench, "o", "c")
    for key in (damaged, of_other):
        bench.world.bucket.put(f"checkpoints/{key}.json", b"{")

    writes, unread = bench.ledger.writes("run")
    assert {(write.write_key, write.status, write.life) for write in writes} == {
        (bench.world.key, "in_progress", "alive"),
        (missing, "announced", "alive"),
        (damaged, "unread", "alive"),
    }
    assert unread == [bench.world.checkpoints.uri(damaged)]

    bench.world.grace_passes()
    assert {write.life for write in bench.ledger.writes("run")[0]} == {"dead"}
    assert [write.write_key for write in bench.ledger.writes("o")[0]] == [of_other]


def test_a_run_that_died_before_its_first_claim_is_known_by_its_marker() -> None:
    """A run without record and document is not unknown while a marker names it."""
    bench = Bench()
    key = announced(bench, "run", "a")
    found, unread = bench.ledger.run("run")
    assert found is not None
    assert ([(write.write_key, write.status) for write in found.writes], unread) == ([(key, "announced")], [])
    assert "soal recover --run run" in str(found.writes[0].reason)


@pytest.mark.parametrize("document", [b"{", None])
def test_what_no_readable_marker_ties_to_a_run_may_be_of_each(document: bytes | None) -> None:
    """A damaged document without a marker, and a damaged marker without a document, are named for every run."""
    bench = Bench()
    if document is None:
        bench.world.bucket.put("open/sw-0/0", b"{")
    else:
        bench.world.bucket.put("checkpoints/sw-0.json", document)
    assert bench.ledger.run("run") == (None, [bench.world.checkpoints.uri("sw-0")])
    assert bench.ledger.run("another") == (None, [bench.world.checkpoints.uri("sw-0")])


def test_a_damaged_marker_beside_a_document_hides_nothing() -> None:
    """The document tells whose the write is."""
    bench = Bench()
    bench.world.job().begin()
    bench.world.bucket.put(f"open/{bench.world.key}/0", b"{")
    writes, unread = bench.ledger.writes("run")
    assert ([write.status for write in writes], unread) == (["in_progress"], [])


def test_a_write_whose_settler_removes_the_marker_meanwhile_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settler has put a document before, so that there is one at a second look."""
    bench = Bench()
    job = bench.world.job().begin()
    body = bench.world.bucket.contents()[f"checkpoints/{bench.world.key}.json"]
    bench.world.bucket.delete(f"checkpoints/{bench.world.key}.json")
    read = bench.ledger.checkpoints.read

    def settled_behind(key: str) -> StoredCheckpoint | None:
        stored = read(key)
        bench.world.bucket.put(f"checkpoints/{key}.json", body)
        bench.world.checkpoints.unmark(key, job.attempt.nonce)
        return stored

    monkeypatch.setattr(bench.ledger.checkpoints, "read", settled_behind)
    writes, unread = bench.ledger.writes("run")
    assert ([write.status for write in writes], unread) == (["in_progress"], [])


def test_of_many_unreadable_documents_some_are_named() -> None:
    """The first are named, and the others counted."""
    told = list(ledger.remarks([f"s3://b/{number:02}" for number in range(22)], "is damaged"))
    assert (told[0], told[19], told[20:]) == (
        "s3://b/00 is damaged",
        "s3://b/19 is damaged",
        ["the same is true of 2 more documents"],
    )
