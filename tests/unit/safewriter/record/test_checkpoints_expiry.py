"""The tag of a document that may expire."""

from __future__ import annotations

import pytest

from safewriter.objects import StoreError
from safewriter.record.checkpoints import FINISHED, Checkpoints
from safewriter.record.document import Status
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.world import World


def tag(world: World) -> str:
    return world.bucket.tags[f"checkpoints/{world.key}.json"]


def test_only_a_document_that_is_finished_may_expire() -> None:
    """It is tagged once it is settled and cleaned up, however it ended; a new claim removes the tag."""
    world = World()
    world.job().begin()
    assert tag(world) == ""
    world.owner_dies()
    world.settle()
    assert tag(world) == ""  # its attempt may still write
    world.grace_passes()
    world.recovery().clean(world.key)
    assert tag(world) == FINISHED
    job = world.job().begin().land()
    assert tag(world) == ""
    assert job.success()
    assert tag(world) == ""
    world.grace_passes()
    world.recovery().clean(world.key)
    assert tag(world) == FINISHED
    stored = world.checkpoints.read(world.key)
    assert stored is not None
    assert world.checkpoints.replace(stored, stored.document.cleaned((), 0)) is not None
    assert tag(world) == FINISHED


def test_a_tombstone_is_finished() -> None:
    """That of a creation that can never land, and so is the verdict of a person on a write that was never claimed."""
    world = World(existing=False)
    job = world.job()
    job.claimer.announce()
    (mark,) = world.checkpoints.marked()
    announced = world.checkpoints.announced(mark)
    assert announced is not None
    world.checkpoints.create(announced.marker.document(Status.ROLLED_BACK, "never claimed", 1, "by hand"))
    assert tag(world) == FINISHED
    assert world.checkpoints.close_creation(world.key, 1) is None
    assert world.bucket.tags[world.checkpoints.note_key(world.key, 1)] == FINISHED


class Untaggable(MemoryObjectStore):
    """A store whose caller may write objects but set no tags."""

    def create(self, key: str, body: bytes, *, tag: str = "") -> str:
        self._check(tag)
        return super().create(key, body)

    def replace(self, key: str, body: bytes, *, etag: str, tag: str = "") -> str:
        self._check(tag)
        return super().replace(key, body, etag=etag)

    @staticmethod
    def _check(tag: str) -> None:
        if tag:
            raise StoreError("s3:PutObjectTagging", denied=True)


def test_who_may_set_no_tags_writes_documents_that_never_expire() -> None:
    """No verdict fails for a permission that only housekeeping needs."""
    world = World()
    finished = world.job().claim().checkpoint.document.moved(Status.COMMITTED, cleaned=True)
    checkpoints = Checkpoints(Untaggable())
    held = checkpoints.create(finished)
    assert held is not None
    assert checkpoints.replace(held, finished) is not None
    assert checkpoints.create(finished) is None
    assert checkpoints.close_creation(world.key, 1) is None


@pytest.mark.parametrize(("denied", "tries"), [(True, [FINISHED, ""]), (False, [FINISHED])])
def test_a_refusal_that_is_not_about_the_tag_is_one(tries: list[str], *, denied: bool) -> None:
    """It denies the caller all writes; a store that does not answer gets no retry without the tag."""
    finished = World().job().claim().checkpoint.document.moved(Status.COMMITTED, cleaned=True)
    asked: list[str] = []

    class Refusing(MemoryObjectStore):
        def create(self, key: str, body: bytes, *, tag: str = "") -> str:
            asked.append(tag)
            raise StoreError("no", denied=denied)

    with pytest.raises(StoreError):
        Checkpoints(Refusing()).create(finished)
    assert asked == tries
