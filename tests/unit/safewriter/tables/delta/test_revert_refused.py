"""A revert or a refusal that the log does not show yet, because it is on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from safewriter.objects import StoreError
from safewriter.tables.delta.commit import Signature
from safewriter.tables.delta.history import DeltaHistory
from tests.unit.safewriter.delta_log import append_actions, body_of
from tests.unit.safewriter.tables.delta.undoing import landed, live, obstacle, undo
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from tests.unit.safewriter.job import Job


def overwritten(world: World) -> Job:
    """Land a commit of ours that replaces the foreign file."""
    job = world.job().begin()
    removed = {"path": world.foreign[0].path, "extendedFileMetadata": True, "size": 100, "deletionTimestamp": 1}
    world.log.commit([*append_actions(job.files, txn=(world.key, 1)), {"remove": removed}])
    return job


def test_a_revert_that_is_on_its_way_does_not_land_after_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """One settler still saw the files that our commit had replaced, the next one does not: one of them has the slot."""
    world = World()
    job = overwritten(world)
    sent: list[tuple[int, list[dict[str, Any]]]] = []

    def stays_in_the_air(_log: DeltaHistory, version: int, actions: list[dict[str, Any]]) -> bool:
        sent.append((version, actions))
        raise StoreError("no answer")

    with monkeypatch.context() as patched, pytest.raises(StoreError):
        patched.setattr(DeltaHistory, "append", stays_in_the_air)
        undo(world, job)
    world.hide(world.foreign[0].key)  # VACUUM

    assert "gone from S3" in obstacle(world, job, slots=1)
    ((version, actions),) = sent
    assert any("add" in action for action in actions)
    assert not world.log.put(version, body_of(actions))


def test_a_refusal_that_loses_its_slot_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The revert that was on its way has landed first: then the commit is undone, whoever asks."""
    world = World()
    job = overwritten(world)
    append = DeltaHistory.append
    before = len(world.log.versions)

    def overtaken(log: DeltaHistory, version: int, actions: list[dict[str, Any]]) -> bool:
        monkeypatch.setattr(DeltaHistory, "append", append)
        world.lake.put(world.foreign[0].key, b"parquet")
        assert undo(world, job) is None
        return append(log, version, actions)

    world.hide(world.foreign[0].key)
    monkeypatch.setattr(DeltaHistory, "append", overtaken)
    assert undo(world, job) is None
    assert len(world.log.versions) == before + 1


def test_another_write_s_revert_undoes_nothing_of_ours() -> None:
    """Its signature names a version, too, but a version of its own write."""
    world, job = landed()
    info = {"operation": "SAFEWRITER REVERT", "userMetadata": Signature("sw-other", 1, reverts=2).to_text()}
    world.log.commit([{"commitInfo": info}])

    assert live(world, job) == 2
