"""What must hold after anything: the invariants of the protocol, checked on the bytes, not by the code under test."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from safewriter.record.document import LEGAL_MOVES, Status

if TYPE_CHECKING:
    from tests.unit.safewriter.world import World

_TERMINAL = ("committed", "rolled_back")


def check(world: World) -> None:
    """Check everything that holds at every moment, and, once the document is terminal, the verdict."""
    log_is_whole(world)
    bystanders_are_there(world)
    history_is_legal(world)
    verdict_is_true(world)


def log_is_whole(world: World) -> None:
    """Versions are contiguous, never written twice, and every file of the newest one is there."""
    versions = world.log.versions
    assert versions == tuple(range(len(versions)))
    slots = [key for key, _ in world.lake.written if key.startswith("_delta_log/")]
    assert len(slots) == len(set(slots))
    for version in versions:
        actions = world.log.read(version)
        assert next(iter(actions[0])) == "commitInfo"
        assert version > 0 or {"protocol", "metaData"} <= {kind for action in actions for kind in action}
    there = world.lake.contents()
    assert [key for key in world.log.referred() if key not in there] == []


def bystanders_are_there(world: World) -> None:
    """Every foreign file is in the table exactly once."""
    live = world.log.live()
    assert [live.count(file.key) for file in world.foreign] == [1] * len(world.foreign)


def history_is_legal(world: World) -> None:
    """The document has moved along the table of moves only; its epoch has risen by one with each claim."""
    moves = documents(world)
    for before, after in pairwise(moves):
        if before["status"] == after["status"] and before["status"] not in _TERMINAL:
            raise AssertionError((before["status"], after["status"]))
        assert (Status(before["status"]), Status(after["status"])) in LEGAL_MOVES
        assert after["epoch"] == before["epoch"] + (after["status"] == "in_progress")
    assert not moves or (moves[0]["status"], moves[0]["epoch"]) == ("in_progress", 1)


def documents(world: World) -> list[dict[str, Any]]:
    return [json.loads(body) for key, body in world.bucket.written if key == f"checkpoints/{world.key}.json"]


def batches(world: World) -> list[str]:
    """Return the nonces of the attempts with files in the table, as often as they occur; fail for torn batches."""
    live = world.log.live()
    found = []
    for job in world.jobs:
        counts = {live.count(file.key) for file in job.files}
        assert len(counts) <= 1
        found += [job.attempt.nonce] * next(iter(counts), 0)
    return found


def verdict_is_true(world: World) -> None:
    """A terminal document is true of the table: it holds one whole batch, or nothing of the write."""
    moves = documents(world)
    found = batches(world)
    assert len(found) <= 1
    if moves and moves[-1]["status"] in _TERMINAL:
        assert bool(found) == (moves[-1]["status"] == "committed")


def nothing_is_left(world: World) -> None:
    """No unreferenced file of any attempt and no upload is left, and every attempt is clean."""
    prefixes = tuple(f"{world.key}-{epoch}-" for epoch in range(10))
    referred = world.log.referred()
    names = [key for key in world.lake.contents() if key.rsplit("/", 1)[-1].startswith(prefixes)]
    assert [key for key in names if key not in referred] == []
    assert list(world.lake.uploads("")) == []
    last = documents(world)[-1]
    assert last["status"] in _TERMINAL
    assert [attempt["nonce"] for attempt in last["attempts"] if not attempt["cleaned"]] == []
