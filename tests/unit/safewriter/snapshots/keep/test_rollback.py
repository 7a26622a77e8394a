from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.objects.store import StoreError
from safewriter.snapshots.errors import (
    ConfigValidationError,
    ManifestParseError,
    PublishConflictError,
    PublishCurrentError,
    ReaderStateError,
    ShardDamagedError,
)
from safewriter.snapshots.format.current import Current
from safewriter.snapshots.keep.history import history
from safewriter.snapshots.keep.removal import mark_of, remove_manifest
from safewriter.snapshots.keep.rollback import Rollback, Target, rollback
from safewriter.snapshots.read.source import url_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.safewriter.snapshots.keep.conftest import World

OLD = dict.fromkeys(range(20), b"old")


def key_of(ref: str) -> str:
    return ref.removeprefix("s3://memory/kv/")


def back(world: World, **target: Any) -> Rollback:
    return rollback(world.source, Target(**target), publisher=world.publisher)


def test_an_earlier_snapshot_becomes_current_again(world: World) -> None:
    """By its manifest, by its run, or by its distance; it counts as another publication."""
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
    """Among those that were published; a second step goes further back."""
    refs = [world.publish("first"), world.publish("second")]
    world.lose("slow")
    assert back(world, back=1).after == refs[1]
    assert back(world, back=1).after == refs[0]
    with pytest.raises(ReaderStateError, match="there are 0 snapshots before the current one"):
        back(world, back=1)


def test_a_build_that_lost_can_be_made_current(world: World) -> None:
    """By its run: its manifest was kept for that."""
    lost = world.lose("slow")
    assert back(world, run_id="slow").after == lost


def test_the_current_one_stays(world: World) -> None:
    """Nothing is written then, nor in a dry run."""
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


def break_shard(world: World, ref: str) -> None:
    shard = world.source.manifest(ref).shards[2]
    world.folder.delete(key_of(url_of(shard)))


def shorten_shard(world: World, ref: str) -> None:
    shard = world.source.manifest(ref).shards[2]
    world.folder.put(key_of(url_of(shard)), b"short")


def condemn(world: World, ref: str) -> None:
    world.folder.put(mark_of(key_of(ref)), b"")


@pytest.mark.parametrize(
    ("damage", "error", "what"),
    [
        (break_manifest, ManifestParseError, "no SQLite file"),
        (change_rule, ManifestParseError, "magic"),
        (break_shard, ShardDamagedError, "is not there"),
        (shorten_shard, ShardDamagedError, "has 5 bytes"),
        (condemn, PublishConflictError, "a clean-up removes"),
        (lambda world, ref: world.folder.delete(key_of(ref)), ManifestParseError, "is not there"),
    ],
)
def test_a_snapshot_that_is_not_whole_does_not_become_current(
    world: World, damage: Callable[[World, str], None], error: type[Exception], what: str
) -> None:
    """The pointer is as it was."""
    old = world.publish("old")
    world.publish("new")
    damage(world, old)
    before = world.folder.get("_CURRENT").body
    with pytest.raises(error, match=what):
        back(world, manifest_ref=old)
    assert world.folder.get("_CURRENT").body == before


def test_one_that_is_not_there_is_told(world: World) -> None:
    """Nor is there one before anything was published."""
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
    """Named in one way."""
    with pytest.raises(ConfigValidationError):
        Target(**target)


def test_a_publication_meanwhile_wins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rollback is told so."""
    old = world.publish("old")
    world.publish("new")
    sizes = world.source.sizes

    def meanwhile(urls: Any) -> dict[str, int]:
        world.publish("meanwhile")
        return sizes(urls)

    monkeypatch.setattr(world.source, "sizes", meanwhile)
    with pytest.raises(PublishConflictError):
        back(world, manifest_ref=old)
    assert world.current().run_id == "meanwhile"


@pytest.mark.parametrize("moment", ["mark", "look", "delete", "unmark"])
def test_a_clean_up_and_a_rollback_leave_a_snapshot_that_is_there(
    world: World, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Whichever step of removing the manifest comes just before the pointer moves."""
    old, new = world.publish("old"), world.publish("new")
    key = key_of(old)
    done = {"mark": 1, "look": 2, "delete": 3, "unmark": 4}[moment]
    folder = world.folder
    steps: list[Callable[[], object]] = [
        lambda: folder.put(mark_of(key), b""),
        world.current,
        lambda: folder.delete(key),
        lambda: folder.delete(mark_of(key)),
    ]
    point = type(world.publisher).point

    def pointed(publisher: Any, *arguments: Any, **more: Any) -> Current:
        monkeypatch.undo()
        for step in steps[:done]:
            step()
        return point(publisher, *arguments, **more)

    monkeypatch.setattr(type(world.publisher), "point", pointed)
    with pytest.raises(PublishConflictError, match="a clean-up removes"):
        back(world, manifest_ref=old)
    for step in steps[done:]:
        step()
    assert (world.current().manifest_ref, world.current().run_id) == (new, "new")
    world.read()


def test_the_mark_is_looked_for_before_the_manifest(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clean-up removes both, the mark last: after the first look, whichever that is."""
    old, _ = world.publish("old"), world.publish("new")
    condemn(world, old)
    before = world.folder.get("_CURRENT").body
    get, sizes = world.bucket.get, world.source.sizes

    def looked(key: str) -> Any:
        found = get(key)
        for one in (key_of(old), mark_of(key_of(old))):
            world.folder.delete(one)
        return found

    def measured(urls: Any) -> dict[str, int]:
        monkeypatch.setattr(world.bucket, "get", looked)
        return sizes(urls)

    monkeypatch.setattr(world.source, "sizes", measured)
    with pytest.raises(PublishConflictError, match="a clean-up removes"):
        back(world, manifest_ref=old)
    assert world.folder.get("_CURRENT").body == before


def test_what_was_published_after_a_rollback_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if a clean-up has removed what was gone back to."""
    old, _ = world.publish("old"), world.publish("new")
    point = type(world.publisher).point

    def pointed(publisher: Any, *arguments: Any, **more: Any) -> Any:
        monkeypatch.undo()
        current = point(publisher, *arguments, **more)
        world.publish("next")
        world.folder.delete(key_of(old))
        return current

    monkeypatch.setattr(type(world.publisher), "point", pointed)
    with pytest.raises(PublishConflictError):
        back(world, manifest_ref=old)
    assert world.current().run_id == "next"


def test_a_manifest_may_lie_elsewhere(world: World) -> None:
    """No clean-up of this prefix removes it."""
    old, _ = world.publish("old"), world.publish("new")
    world.bucket.put("elsewhere/manifest", world.folder.get(key_of(old)).body)
    assert back(world, manifest_ref="s3://memory/elsewhere/manifest").is_change
    assert world.current().manifest_ref == "s3://memory/elsewhere/manifest"
    with pytest.raises(ReaderStateError, match="name another one by its URL"):
        back(world, back=1)


def test_a_rollback_that_nobody_can_vouch_for_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store does not answer after the pointer has moved."""
    old = world.publish("old")
    world.publish("new")
    point = type(world.publisher).point

    def pointed(publisher: Any, *arguments: Any, **more: Any) -> Current:
        current = point(publisher, *arguments, **more)
        monkeypatch.setattr(world.bucket, "get", silent)
        return current

    def silent(_: str) -> None:
        raise StoreError("no answer")

    monkeypatch.setattr(type(world.publisher), "point", pointed)
    with pytest.raises(PublishCurrentError, match="nobody knows whether a clean-up removes it"):
        back(world, manifest_ref=old)


def test_a_manifest_is_marked_before_the_pointer_is_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """And until it is gone: that is what a rollback looks for."""
    old, _ = world.publish("old"), world.publish("new")
    steps = []
    for name in ("put", "get", "delete"):
        done = getattr(world.bucket, name)

        def noted(key: str, *rest: Any, name: str = name, done: Any = done) -> Any:
            steps.append((name, key.rpartition("/")[2]))
            return done(key, *rest)

        monkeypatch.setattr(world.bucket, name, noted)
    remove_manifest(world.folder, key_of(old))
    mark = "manifest.removing"
    assert steps == [("put", mark), ("get", "_CURRENT"), ("delete", "manifest"), ("delete", mark)]


def test_a_manifest_that_is_current_by_now_is_not_removed(world: World) -> None:
    """Nor where there is no pointer; no mark stays."""
    old, new = world.publish("old"), world.publish("new")
    assert not remove_manifest(world.folder, key_of(new))
    assert remove_manifest(world.folder, key_of(old))
    assert world.keys("manifests/") == [key_of(new)]
    world.folder.delete("_CURRENT")
    assert not remove_manifest(world.folder, key_of(new))
    assert world.keys("manifests/") == [key_of(new)]
