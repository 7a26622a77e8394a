"""A rollback makes an earlier, whole snapshot current again, named by manifest, run or distance."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.snapshots.errors import (
    ConfigValidationError,
    ManifestParseError,
    PublishConflictError,
    ReaderStateError,
    ShardDamagedError,
)
from safewriter.snapshots.format.current import Current
from safewriter.snapshots.keep.history import history
from safewriter.snapshots.keep.removal import notices_of
from safewriter.snapshots.keep.rollback import Rollback, Target, rollback
from safewriter.snapshots.read.source import url_of
from tests.support.snapshots import as_slatedb, build
from tests.unit.safewriter.snapshots.conftest import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.unit.safewriter.snapshots.conftest import World

OLD = dict.fromkeys(range(20), b"old")


def key_of(ref: str) -> str:
    return ref.removeprefix("s3://memory/kv/")


def back(world: World, **target: Any) -> Rollback:
    return rollback(world.source, Target(**target), publisher=world.publisher)


def test_an_earlier_snapshot_becomes_current_again(world: World) -> None:
    """Its manifest, its run or its distance names it; the rollback counts as another publication."""
    old = world.publish("old", OLD)
    new = world.publish("new")
    for target in ({"manifest_ref": old}, {"run_id": "old"}, {"back": 1}):
        found = back(world, **target)
        assert (found.before, found.after, found.is_change) == (new, old, True)
        assert world.read() == OLD
        assert (world.current().manifest_ref, world.current().run_id) == (old, "old")
        assert back(world, run_id="new").is_change
    assert world.current().version == 8
    assert [entry.run_id for entry in history(world.source)] == ["new", "old"]


def test_the_distance_is_from_the_current_one(world: World) -> None:
    """It counts only published snapshots; a second rollback goes further back."""
    refs = [world.publish("first"), world.publish("second")]
    world.lose("slow")
    assert back(world, back=1).after == refs[1]
    assert back(world, back=1).after == refs[0]
    with pytest.raises(ReaderStateError, match="names 0 snapshots before the current one"):
        back(world, back=1)


def test_a_build_that_lost_can_be_made_current(world: World) -> None:
    """Its URL names it, and the manifest was kept for that; its run does not, since anybody may have written it."""
    lost = world.lose("slow")
    before = world.folder.get("_CURRENT").body
    with pytest.raises(ReaderStateError, match=f"names no manifest of run 'slow'; name one by its URL: {lost}"):
        back(world, run_id="slow")
    assert world.folder.get("_CURRENT").body == before
    assert back(world, manifest_ref=lost).after == lost


def test_a_manifest_in_the_name_of_a_published_run_does_not_become_current(world: World) -> None:
    """`_CURRENT` names the run's own one, whatever the other's date says."""
    old = world.publish("old", OLD)
    world.publish("new")
    world.forge("old")
    assert back(world, run_id="old").after == old


def test_no_manifest_that_current_has_forgotten_becomes_current_by_its_distance(world: World) -> None:
    """Of those that are older than its history, nobody knows which were published."""
    old, new = world.publish("old", OLD), world.publish("new")
    forgetful = replace(world.current(), history=world.current().history[:1], version=102)
    world.folder.put("_CURRENT", forgetful.encode())
    assert [entry.manifest_ref for entry in history(world.source)] == [new, old]
    with pytest.raises(ReaderStateError, match="names 0 snapshots before the current one, not 1"):
        back(world, back=1)
    assert back(world, manifest_ref=old).after == old


def test_the_current_one_stays(world: World) -> None:
    """Nothing is written for the current snapshot, nor in a dry run."""
    old, new = world.publish("old"), world.publish("new")
    before = world.folder.get("_CURRENT").body
    assert not back(world, manifest_ref=new).is_change
    found = rollback(world.source, Target(manifest_ref=old), publisher=world.publisher, dry_run=True)
    assert (found.before, found.after) == (new, old)
    assert world.folder.get("_CURRENT").body == before


def break_manifest(world: World, ref: str) -> None:
    world.folder.put(key_of(ref), b"something else")


def change_rule(world: World, ref: str) -> None:
    manifest = replace(world.source.manifest(ref), sharding={"strategy": "magic"})
    world.folder.put(key_of(ref), manifest.encode())


def change_rule_of_an_unnamed_manifest(world: World, ref: str) -> None:
    change_rule(world, ref)
    current = world.current()
    unnamed = tuple(replace(past, sha256=None) for past in current.history)
    world.folder.put("_CURRENT", current.changed(history=unnamed).encode())


def break_shard(world: World, ref: str) -> None:
    shard = world.source.manifest(ref).shards[2]
    world.folder.delete(key_of(url_of(shard)))


def shorten_shard(world: World, ref: str) -> None:
    shard = world.source.manifest(ref).shards[2]
    world.folder.put(key_of(url_of(shard)), b"short")


def condemn(world: World, ref: str) -> None:
    world.folder.put(notices_of(key_of(ref)) + "1", b"")


@pytest.mark.parametrize(
    ("damage", "error", "what"),
    [
        (break_manifest, ManifestParseError, "no SQLite file"),
        (change_rule, ManifestParseError, "somebody has changed the object"),
        (change_rule_of_an_unnamed_manifest, ManifestParseError, "magic"),
        (break_shard, ShardDamagedError, "is not there"),
        (shorten_shard, ShardDamagedError, "has 5 bytes"),
        (condemn, PublishConflictError, "a clean-up removes"),
        (lambda world, ref: world.folder.delete(key_of(ref)), ManifestParseError, "is not there"),
    ],
)
def test_a_snapshot_that_is_not_whole_does_not_become_current(
    world: World, damage: Callable[[World, str], None], error: type[Exception], what: str
) -> None:
    """`_CURRENT` is unchanged."""
    old = world.publish("old")
    world.publish("new")
    damage(world, old)
    before = world.folder.get("_CURRENT").body
    with pytest.raises(error, match=what):
        back(world, manifest_ref=old)
    assert world.folder.get("_CURRENT").body == before


def test_one_that_is_not_there_is_told(world: World) -> None:
    """It raises also before the first publication."""
    with pytest.raises(ReaderStateError, match="nothing was published"):
        back(world, back=1)
    world.folder.put("_CURRENT", Current.absent(world.now).changed(fenced={"sw-1-1-a": 1}).encode())
    with pytest.raises(ReaderStateError, match="nothing was published"):
        back(world, back=1)
    world.publish("old")
    with pytest.raises(ReaderStateError, match="no manifest of a run 'none'"):
        back(world, run_id="none")


@pytest.mark.parametrize("target", [{}, {"back": 1, "run_id": "r"}, {"back": 0}])
def test_a_target_is_one_snapshot(target: dict[str, Any]) -> None:
    """Exactly one field names it."""
    with pytest.raises(ConfigValidationError):
        Target(**target)


def test_a_publication_meanwhile_wins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rollback raises `PublishConflictError`."""
    old = world.publish("old")
    world.publish("new")
    damage = world.source.damage

    def meanwhile(shards: Any) -> Iterator[str]:
        world.publish("meanwhile")
        return damage(shards)

    monkeypatch.setattr(world.source, "damage", meanwhile)
    with pytest.raises(PublishConflictError):
        back(world, manifest_ref=old)
    assert world.current().run_id == "meanwhile"


def test_a_manifest_may_lie_elsewhere(world: World) -> None:
    """Any place below the prefix is valid; any other is refused, and the same snapshot stays current."""
    old, _ = world.publish("old"), world.publish("new")
    world.folder.put("copies/manifest", world.folder.get(key_of(old)).body)
    assert back(world, manifest_ref="s3://memory/kv/copies/manifest").is_change
    world.bucket.put("elsewhere/manifest", world.folder.get(key_of(old)).body)
    with pytest.raises(ManifestParseError, match="does not lie below s3://memory/kv/"):
        back(world, manifest_ref="s3://memory/elsewhere/manifest")
    assert world.current().manifest_ref == "s3://memory/kv/copies/manifest"
    with pytest.raises(ReaderStateError, match="name another one by its URL"):
        back(world, back=1)


def test_a_snapshot_in_another_database_becomes_current_again(world: World) -> None:
    """The sizes of its objects are checked, of which a shard has several."""
    base = world.publisher.base()
    manifest = as_slatedb(world.folder, build(world.folder, ROWS, "slate", created=world.now))
    old = world.publisher.publish(manifest, base)
    world.passes(hours=1)
    world.publish("new")
    assert back(world, manifest_ref=old).after == old
    assert world.current().manifest_ref == old


def test_the_token_of_another_lock_can_be_forgotten(world: World) -> None:
    """Until then, builds with tokens of another lock cannot begin; the error says what to do."""
    ref = world.publish("one", OLD)
    world.publisher.base(10**15)
    with pytest.raises(PublishConflictError, match="soal snapshot rollback --ref CURRENT-MANIFEST --forget-token"):
        world.publisher.base(7)
    rollback(world.source, Target(manifest_ref=ref), publisher=world.publisher)
    rollback(world.source, Target(manifest_ref=ref), publisher=world.publisher, forget_token=True, dry_run=True)
    assert world.current().fencing_token == 10**15
    rollback(world.source, Target(manifest_ref=ref), publisher=world.publisher, forget_token=True)
    assert (world.current().fencing_token, world.current().manifest_ref) == (None, ref)
    assert world.publisher.base(7).token == 7
