"""A marker is read as an attempt wrote it, and becomes a document that a retry can claim."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from safewriter.block.block import _STEP_MAX
from safewriter.errors import UnreadableCheckpointError
from safewriter.identity import Attempt, Run, Write
from safewriter.record.document import LEGAL_MOVES, Checkpoint, Status
from safewriter.record.marker import Marker
from tests.unit.safewriter.world import World


def marker(deadline_ms: int | None = 5) -> Marker:
    world = World()
    job = world.job()
    return Marker.of(world.write, job.attempt, world.commit_point, started_ms=1, deadline_ms=deadline_ms)


@pytest.mark.parametrize("deadline_ms", [None, 5])
def test_a_marker_is_read_as_it_was_written(deadline_ms: int | None) -> None:
    """All of it comes back, also the missing deadline."""
    written = marker(deadline_ms)
    assert Marker.from_bytes(written.to_bytes()) == written


def test_a_marker_of_before_catalogs_were_named_is_read() -> None:
    """An older version wrote it, and it may still be in a bucket."""
    written = dataclasses.replace(marker(), catalog={"type": "rest"})
    assert Marker.from_bytes(written.to_bytes()) == written
    old = {name: value for name, value in json.loads(written.to_bytes()).items() if name != "catalog"}
    assert Marker.from_bytes(json.dumps(old).encode()) == marker()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        json.dumps({**json.loads(marker().to_bytes()), "schema_version": 99}).encode(),
        json.dumps({**json.loads(marker().to_bytes()), "commit_point": "later"}).encode(),
        json.dumps({**json.loads(marker().to_bytes()), "prefix": "part-"}).encode(),
        json.dumps({**json.loads(marker().to_bytes()), "table": "s3://lake/other"}).encode(),
        b'{"schema_version": 1}',
    ],
)
def test_a_marker_of_another_version_or_a_damaged_one_is_refused(body: bytes) -> None:
    """A guess at its meaning could close a write that is still alive."""
    with pytest.raises(UnreadableCheckpointError):
        Marker.from_bytes(body)


@pytest.mark.parametrize("name", ["table", "format", "step", "run_id", "request_id", "fingerprint"])
def test_a_text_that_no_name_has_is_refused_and_never_written(name: str) -> None:
    """A settler keeps and tells the texts of thousands of markers."""
    longest = named(**{name: "x" * 8192})
    assert Marker.from_bytes(longest.to_bytes()) == longest
    long = named(**{name: "x" * 8193})
    with pytest.raises(UnreadableCheckpointError, match=f"nothing was written, since .*{name} has 8,193 letters"):
        long.to_bytes()
    body = json.loads(longest.to_bytes()) | {name: "x" * 8193}
    with pytest.raises(UnreadableCheckpointError, match=f"{name} has 8,193 letters"):
        Marker.from_bytes(json.dumps({**body, "write_key": long.write_key, "prefix": long.prefix}).encode())


def named(**names: Any) -> Marker:
    """A marker of other names, with the key and the prefix of that write."""
    found = dataclasses.replace(marker(), **names)
    key = Write(Run(found.run_key, "run-id"), found.table, found.format, found.step).key
    return dataclasses.replace(found, write_key=key, prefix=Attempt(found.nonce).file_prefix(key, 1))


def test_the_longest_step_of_a_stream_s_batch_and_any_reason_make_a_document_that_can_be_read() -> None:
    """Whatever a block and a person may say, a retry reads it."""
    announced = named(step=f"{'x' * _STEP_MAX}, batch {2**63}", table=f"s3://{'b' * 63}/{'k' * 1024}")
    made = announced.document(Status.UNKNOWN, "why " * 10**6, 7, "by hand")
    found = Checkpoint.from_bytes(made.to_bytes())
    texts: dict[str, Any] = {"reason": "why " * 10**6, "undo_refused": "no " * 10**6, "incomplete": "some " * 10**6}
    assert Checkpoint.from_bytes(found.moved(Status.COMMITTED, **texts).to_bytes()).status is Status.COMMITTED


def test_an_unknown_version_is_told_by_its_beginning() -> None:
    """Whoever wrote the marker chose it, and settlers repeat the message."""
    with pytest.raises(UnreadableCheckpointError) as raised:
        Marker.from_bytes(json.dumps({**json.loads(marker().to_bytes()), "schema_version": "9" * 5000}).encode())
    assert len(str(raised.value)) < 300


def test_its_document_is_the_one_that_the_attempt_would_have_claimed_rolled_back() -> None:
    """A retry can claim the next epoch after it, and it can be read back."""
    world = World()
    job = world.job()
    announced = Marker.of(world.write, job.attempt, world.commit_point, started_ms=1, deadline_ms=5)
    made = Checkpoint.from_bytes(announced.document(Status.ROLLED_BACK, "never claimed", 7, "by hand").to_bytes())
    claimed = job.claim().checkpoint.document
    same = ("run_key", "write_key", "fingerprint", "table", "format", "step", "commit_point", "epoch", "owner")
    assert [getattr(made, name) for name in same] == [getattr(claimed, name) for name in same]
    assert made.attempt.prefix == claimed.attempt.prefix
    assert made.status is Status.ROLLED_BACK
    assert (Status.ROLLED_BACK, Status.IN_PROGRESS) in LEGAL_MOVES
