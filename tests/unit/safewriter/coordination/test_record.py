"""A lock's record as bytes: it is read as written, within bounds, and damage or a later version is refused."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from safewriter.coordination.configuration import Edge, FirstRun, Mode
from safewriter.coordination.record import (
    HISTORY_MAX,
    JOBS_MAX,
    QUEUE_MAX,
    RUNS_MAX,
    End,
    Job,
    OpenWrite,
    PastTurn,
    Record,
)
from safewriter.coordination.transitions import end, grant, join, open_write
from safewriter.errors import UnknownVersionError, UnreadableCheckpointError
from tests.unit.safewriter.coordination.bench import job

WRITE = OpenWrite("s3://checkpoints", "key", 2)


def full() -> Record:
    """A record with a value in each field."""
    more = {"predecessor": "A", "edge": Edge.LAGGED, "lag": 3, "first_run": FirstRun.RUN}
    record = end(
        open_write(grant(Record("lock", servers=("http://here",)), job(), "a", "run", 1), WRITE), End.EXPIRED, 2
    )
    record = open_write(grant(record, job("B", **more), "b", "", 3), OpenWrite("s3://other", "key", 1))
    return join(record, job("C", predecessor="B", mode=Mode.STRICT, poll_s=0.25), "c", 4)


def test_a_record_is_read_as_it_was_written() -> None:
    """Enums are read as enums, and tuples as tuples."""
    found = Record.decode(full().encode(), "here")
    assert found == full()
    assert isinstance(found.history[0].end, End)
    assert isinstance(found.jobs["C"].mode, Mode)
    assert found.unsettled == (WRITE,)
    assert Record.decode(Record("lock").encode(), "here") == Record("lock")


def test_no_two_changes_have_equal_bytes() -> None:
    """So their ETags differ: otherwise a lost reply would look like another process's write."""
    assert full().encode() != full().encode()


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"\xff", b"{"])
def test_what_is_no_record_is_damaged(body: bytes) -> None:
    """The message says where."""
    with pytest.raises(UnreadableCheckpointError, match=r"s3://locks/lock\.json is not a lock's record"):
        Record.decode(body, "s3://locks/lock.json")


@pytest.mark.parametrize(
    "change",
    [
        {"lock": None, "token": None},
        {"token": "many"},
        {"holder": {"job": "A"}},
        {"jobs": {"A": {"mode": "loose"}}},
        {"queue": [{}]},
        {"history": [{"end": "well"}]},
        {"unsettled": [{"key": "x"}]},
    ],
)
def test_a_record_with_a_damaged_field_is_damaged(change: dict[str, object]) -> None:
    """It is not taken for a free lock."""
    with pytest.raises(UnreadableCheckpointError, match="is damaged"):
        Record.decode(json.dumps({**json.loads(full().encode()), **change}).encode(), "here")


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("holder", "since_ms", 10**18),
        ("holder", "since_ms", "x"),
        ("holder", "job", 5),
        ("holder", "lease_s", "x"),
        ("holder", "lease_s", float("inf")),
        ("queue", "ticket", "x"),
        ("queue", "poll_s", None),
        ("history", "until_ms", 10**18),
        ("unsettled", "epoch", "1"),
        ("jobs", "lag", "x"),
        ("jobs", "completed", "x"),
        ("jobs", "predecessor", 1),
        (None, "token", 2**63),
        (None, "lock", 1),
    ],
)
def test_every_field_has_its_type(part: str | None, name: str, value: object) -> None:
    """A list of the locks shows the others beside a damaged one, and no report fails later."""
    told = json.loads(full().encode())
    found = told if part is None else told[part]
    for one in found if isinstance(found, list) else [found["B"] if part == "jobs" else found]:
        one[name] = value
    with pytest.raises(UnreadableCheckpointError, match=f"here is damaged: .*{name}"):
        Record.decode(json.dumps(told).encode(), "here")


@pytest.mark.parametrize(
    ("part", "name", "value", "words"),
    [
        ("queue", "job", "no name!", "not a name"),
        ("queue", "job", "", "not a name"),
        ("queue", "poll_s", 0, "poll"),
        ("holder", "job", "no name!", "not a name"),
        ("holder", "lease_s", -1, "lease"),
        ("jobs", "predecessor", "B", "the job itself"),
        ("jobs", "predecessor", "no name!", "not a name"),
        ("jobs", "lag", 0, "not between"),
        ("jobs", "edge", "soft", "lagged only"),
        ("jobs", "mode", "strict", "hard edges only"),
        ("jobs", "runs", ["run"] * (RUNS_MAX + 1), "runs has"),
        ("unsettled", "checkpoints", "nowhere", "not an S3 path"),
        (None, "lock", "no name!", "not a name"),
        (None, "jobs", {f"job-{number}": asdict(Job()) for number in range(JOBS_MAX + 1)}, "jobs has"),
        (None, "jobs", {"no name!": asdict(Job())}, "not a name"),
        (None, "queue", [asdict(full().queue[0])] * (QUEUE_MAX + 1), "queue has"),
        (None, "history", [asdict(full().history[0])] * (HISTORY_MAX + 1), "history has"),
    ],
)
def test_what_no_job_can_have_written_is_damage(part: str | None, name: str, value: object, words: str) -> None:
    """Each order is one that a job may ask for, and each list is bounded, so no report and no turn fails later."""
    told = json.loads(full().encode())
    found = told if part is None else told[part]
    for one in found if isinstance(found, list) else [found["B"] if part == "jobs" else found]:
        one[name] = value
    with pytest.raises(UnreadableCheckpointError, match=f"here is damaged: .*{words}"):
        Record.decode(json.dumps(told).encode(), "here")


def test_a_record_that_nobody_could_read_is_not_written() -> None:
    """The previous record stays, and the next holder can use it."""
    with pytest.raises(UnreadableCheckpointError, match=r"which is not written, is damaged: .*token"):
        replace(full(), token=2**63).encode()


def test_a_record_of_a_later_version_is_refused() -> None:
    """It may have content that this code does not know and that matters."""
    with pytest.raises(UnknownVersionError, match="has version 2"):
        Record.decode(json.dumps({**json.loads(full().encode()), "version": 2}).encode(), "here")


def test_an_unknown_version_is_told_by_its_beginning() -> None:
    """Whoever wrote the record chose it, and each job that asks for the lock repeats the message."""
    with pytest.raises(UnknownVersionError) as raised:
        Record.decode(json.dumps({**json.loads(full().encode()), "version": "9" * 5000}).encode(), "here")
    assert len(str(raised.value)) < 300


def test_a_job_that_nobody_knows_is_at_the_start() -> None:
    """Reading its progress does not change the record."""
    record = Record("lock")
    assert record.job("A") == Job()
    assert not record.jobs
    assert record.with_job("A", Job(left=1)).job("A").left == 1
    assert not record.jobs


def test_a_grant_is_known_by_its_nonce() -> None:
    """The job's name does not identify it: another process of the job may have asked, too."""
    record = full()
    assert record.is_held_by("b")
    assert not record.is_held_by("B")
    assert not Record("lock").is_held_by("")


def test_a_past_turn_says_how_it_ended() -> None:
    """It is for people; its times are wall clocks."""
    assert full().history == (PastTurn("A", 1, 1, 2, End.EXPIRED, "run"),)


@pytest.mark.parametrize("change", [{"token": 1e999}, {"jobs": []}, {"jobs": {"a": []}}, {"holder": "x"}])
def test_a_record_with_a_field_of_another_type_is_damaged(change: dict[str, object]) -> None:
    """It raises only `UnreadableCheckpointError`."""
    found = json.loads(Record("table").encode())
    with pytest.raises(UnreadableCheckpointError, match="where is damaged"):
        Record.decode(json.dumps({**found, **change}).encode(), "where")
