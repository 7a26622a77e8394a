"""A marker is read as an attempt wrote it, and becomes a tombstone document that a retry can claim."""

from __future__ import annotations

import dataclasses
import json

import pytest

from safewriter.errors import UnreadableCheckpointError
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


def test_an_unknown_version_is_told_by_its_beginning() -> None:
    """Whoever wrote the marker chose it, and settlers repeat the message."""
    with pytest.raises(UnreadableCheckpointError) as raised:
        Marker.from_bytes(json.dumps({**json.loads(marker().to_bytes()), "schema_version": "9" * 5000}).encode())
    assert len(str(raised.value)) < 300


def test_a_tombstone_is_the_document_that_the_attempt_would_have_claimed_rolled_back() -> None:
    """A retry can claim the next epoch after it, and it can be read back."""
    world = World()
    job = world.job()
    announced = Marker.of(world.write, job.attempt, world.commit_point, started_ms=1, deadline_ms=5)
    stone = Checkpoint.from_bytes(announced.document(Status.ROLLED_BACK, "never claimed", 7, "sweeper").to_bytes())
    claimed = job.claim().checkpoint.document
    same = ("run_key", "write_key", "fingerprint", "table", "format", "step", "commit_point", "epoch", "owner")
    assert [getattr(stone, name) for name in same] == [getattr(claimed, name) for name in same]
    assert stone.attempt.prefix == claimed.attempt.prefix
    assert stone.status is Status.ROLLED_BACK
    assert (Status.ROLLED_BACK, Status.IN_PROGRESS) in LEGAL_MOVES
