"""The note of a creation, and the tombstone that closes its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.objects import PreconditionFailed, StoreError
from safewriter.record.checkpoints import FINISHED
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from safewriter.objects import StoredObject


def test_a_creation_that_was_not_sent_is_closed_for_good() -> None:
    """The tombstone stops the note that comes later, and a second settler sees the same."""
    world = World()

    assert world.checkpoints.close_creation("sw-x", 1) is None
    assert world.checkpoints.close_creation("sw-x", 1) is None
    with pytest.raises(PreconditionFailed):
        world.bucket.create(world.checkpoints.note_key("sw-x", 1), b"note")
    world.bucket.create(world.checkpoints.note_key("sw-x", 2), b"note")


@pytest.mark.parametrize("word", ['{"partitionColumns":["closed"]}', '{"configuration":{"closed":true}}'])
def test_a_creation_note_is_returned_whatever_words_it_holds(word: str) -> None:
    """A column named "closed" makes no tombstone."""
    world = World()
    note = f'{{"metaData":{word}}}\n{{"note":{{"nonce":"a"}}}}\n'.encode()
    world.bucket.create(world.checkpoints.note_key("sw-x", 1), note)

    assert world.checkpoints.close_creation("sw-x", 1) == note


def test_a_note_that_goes_meanwhile_is_an_error() -> None:
    """It proves nothing."""

    class Hidden(MemoryObjectStore):
        def get(self, key: str, *, max_bytes: int | None = None) -> None:
            return None

    hidden = Hidden()
    world = World()
    world.checkpoints.store = hidden
    hidden.create(world.checkpoints.note_key("sw-x", 1), b"note")

    with pytest.raises(StoreError, match="was there, and is gone"):
        world.checkpoints.close_creation("sw-x", 1)


def test_the_note_of_a_landed_creation_may_expire() -> None:
    """The commit has its slot, so the note has no further use. It stays until then: deleting notes lifts fences."""
    world = World()
    key = world.checkpoints.note_key("sw-x", 1)
    world.bucket.create(key, b"note")

    world.checkpoints.forget_note("sw-x", 1)

    assert world.bucket.contents() == {key: b"note"}
    assert world.bucket.tags[key] == FINISHED
    with pytest.raises(PreconditionFailed):
        world.bucket.create(key, b"a late one")


def test_a_note_that_is_gone_or_changes_meanwhile_is_left_alone() -> None:
    """Whoever changed it has settled the creation."""

    class Changed(MemoryObjectStore):
        def get(self, key: str, *, max_bytes: int | None = None) -> StoredObject | None:
            found = super().get(key, max_bytes=max_bytes)
            self.put(key, b"another")
            return found

    world = World()
    world.checkpoints.store = changed = Changed()
    key = world.checkpoints.note_key("sw-x", 1)
    for _ in ("gone", "changed"):
        world.checkpoints.forget_note("sw-x", 1)
        found = changed.get(key)
        assert found is not None
        assert (found.body, changed.tags[key]) == (b"another", "")
