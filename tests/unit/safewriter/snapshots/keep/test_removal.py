"""A clean-up that removes a snapshot's manifest races with a rollback to it: a current manifest always exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from safewriter.objects.store import StoreError
from safewriter.snapshots.errors import PublishConflictError, PublishCurrentError
from safewriter.snapshots.keep.removal import notices_of, remove_manifest
from tests.unit.safewriter.snapshots.keep.test_rollback import back, condemn, key_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.snapshots.format.current import Current
    from tests.unit.safewriter.snapshots.conftest import World


@pytest.mark.parametrize("moment", ["notice", "look", "delete", "withdraw"])
def test_a_clean_up_and_a_rollback_leave_a_snapshot_that_is_there(
    world: World, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """This holds for each step of the removal that comes right before the rollback's publication."""
    old, new = world.publish("old"), world.publish("new")
    key = key_of(old)
    done = {"notice": 1, "look": 2, "delete": 3, "withdraw": 4}[moment]
    folder = world.folder
    steps: list[Callable[[], object]] = [
        lambda: folder.put(notices_of(key) + "1", b""),
        world.current,
        lambda: folder.delete(key),
        lambda: folder.delete(notices_of(key) + "1"),
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


def test_the_notices_are_looked_for_before_the_manifest(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clean-up removes both, the notice last, here right after the rollback's first look."""
    old, _ = world.publish("old"), world.publish("new")
    condemn(world, old)
    before = world.folder.get("_CURRENT").body
    get, listing, damage = world.bucket.get, world.bucket.list, world.source.damage

    def goes() -> None:
        for one in world.keys("manifests/"):
            if one.startswith(key_of(old)):
                world.folder.delete(one)

    def looked(key: str) -> Any:
        found = get(key)
        monkeypatch.undo()
        goes()
        return found

    def listed(prefix: str, **more: Any) -> Any:
        found = list(listing(prefix, **more))
        monkeypatch.undo()
        goes()
        return found

    def measured(shards: Any) -> Any:
        found = tuple(damage(shards))
        monkeypatch.setattr(world.bucket, "get", looked)
        monkeypatch.setattr(world.bucket, "list", listed)
        return found

    monkeypatch.setattr(world.source, "damage", measured)
    with pytest.raises(PublishConflictError, match="a clean-up removes"):
        back(world, manifest_ref=old)
    assert world.folder.get("_CURRENT").body == before


def test_what_was_published_after_a_rollback_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays even if a clean-up has removed the rollback's target."""
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


def test_a_rollback_that_nobody_can_vouch_for_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store does not answer after `_CURRENT` has moved."""
    old = world.publish("old")
    world.publish("new")
    point = type(world.publisher).point

    def pointed(publisher: Any, *arguments: Any, **more: Any) -> Current:
        current = point(publisher, *arguments, **more)
        monkeypatch.setattr(world.bucket, "list", silent)
        return current

    def silent(_: str, **_more: Any) -> None:
        raise StoreError("no answer")

    monkeypatch.setattr(type(world.publisher), "point", pointed)
    with pytest.raises(PublishCurrentError, match="nobody knows whether a clean-up removes it"):
        back(world, manifest_ref=old)


def test_a_removal_is_announced_before_the_pointer_is_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notice, which a rollback looks for, stays until the manifest is gone."""
    old, _ = world.publish("old"), world.publish("new")
    steps = []
    for name in ("put", "get", "delete"):
        done = getattr(world.bucket, name)

        def noted(key: str, *rest: Any, name: str = name, done: Any = done, **more: Any) -> Any:
            steps.append((name, key.rpartition("/")[2]))
            return done(key, *rest, **more)

        monkeypatch.setattr(world.bucket, name, noted)
    remove_manifest(world.folder, key_of(old))
    notice = steps[0][1]
    assert notice.startswith("manifest.removing-")
    assert steps == [("put", notice), ("get", "_CURRENT"), ("delete", "manifest"), ("delete", notice)]


def test_a_clean_up_leaves_the_notice_of_another_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one read `_CURRENT` before the rollback and deletes the manifest after it; the rollback is undone."""
    old, new = world.publish("old"), world.publish("new")
    later: list[str] = []
    delete, point = world.bucket.delete, type(world.publisher).point

    def pointed(publisher: Any, *arguments: Any, **more: Any) -> Current:
        monkeypatch.setattr(world.bucket, "delete", later.append)
        assert remove_manifest(world.folder, key_of(old))
        monkeypatch.setattr(world.bucket, "delete", delete)
        monkeypatch.setattr(type(world.publisher), "point", point)
        current = point(publisher, *arguments, **more)
        assert not remove_manifest(world.folder, key_of(old))
        return current

    monkeypatch.setattr(type(world.publisher), "point", pointed)
    with pytest.raises(PublishConflictError, match="a clean-up removes"):
        back(world, manifest_ref=old)
    for key in later:
        world.bucket.delete(key)
    assert world.current().manifest_ref == new
    assert world.keys("manifests/") == [key_of(new)]


@pytest.mark.parametrize("goes", ["is being removed", "is gone"])
def test_a_rollback_that_is_undone_tells_if_the_earlier_one_goes_too(
    world: World, monkeypatch: pytest.MonkeyPatch, goes: str
) -> None:
    """Another clean-up has read `_CURRENT` while the other manifest was current."""
    old, new = world.publish("old"), world.publish("new")
    point = type(world.publisher).point

    def pointed(publisher: Any, *arguments: Any, **more: Any) -> Current:
        monkeypatch.undo()
        current = point(publisher, *arguments, **more)
        world.folder.delete(key_of(old))
        if goes == "is gone":
            world.folder.delete(key_of(new))
        else:
            condemn(world, new)
        return current

    monkeypatch.setattr(type(world.publisher), "point", pointed)
    with pytest.raises(PublishCurrentError, match="is current again, but a clean-up removes it") as told:
        back(world, manifest_ref=old)
    assert told.value.manifest_ref == world.current().manifest_ref == new


def test_a_store_that_is_silent_while_a_rollback_is_undone_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`_CURRENT` may point to the manifest that is being removed."""
    old, _ = world.publish("old"), world.publish("new")
    base = type(world.publisher).base
    times = []

    def asked(publisher: Any) -> Any:
        times.append(1)
        if len(times) > 1:
            raise StoreError("no answer")
        return base(publisher)

    point = type(world.publisher).point

    def pointed(publisher: Any, *arguments: Any, **more: Any) -> Current:
        current = point(publisher, *arguments, **more)
        condemn(world, old)
        return current

    monkeypatch.setattr(type(world.publisher), "base", asked)
    monkeypatch.setattr(type(world.publisher), "point", pointed)
    with pytest.raises(PublishCurrentError, match="nobody knows whether a clean-up removes it"):
        back(world, manifest_ref=old)


def test_a_manifest_that_is_current_by_now_is_not_removed(world: World) -> None:
    """It is not removed without `_CURRENT`, either; no notice stays."""
    old, new = world.publish("old"), world.publish("new")
    assert not remove_manifest(world.folder, key_of(new))
    assert remove_manifest(world.folder, key_of(old))
    assert world.keys("manifests/") == [key_of(new)]
    world.folder.delete("_CURRENT")
    assert not remove_manifest(world.folder, key_of(new))
    assert world.keys("manifests/") == [key_of(new)]
