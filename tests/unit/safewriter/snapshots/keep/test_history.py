"""The history of a prefix's snapshots tells the current one, the earlier ones, and builds that were never current."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from safewriter.snapshots.errors import PublishConflictError, ReaderStateError
from safewriter.snapshots.format.current import CURRENT, ManifestAt
from safewriter.snapshots.keep.history import entries, history
from tests.support.snapshots import build
from tests.unit.safewriter.snapshots.conftest import ROWS

if TYPE_CHECKING:
    from tests.unit.safewriter.snapshots.conftest import World


def test_the_newest_build_is_the_first(world: World) -> None:
    """The history says which one is current, and when each was published."""
    first, second = world.publish("first"), world.publish("second")
    world.folder.put("manifests/something/else", b"")
    found = history(world.source)
    assert [(entry.manifest_ref, entry.run_id, entry.is_current) for entry in found] == [
        (second, "second", True),
        (first, "first", False),
    ]
    assert found[1].created_at == found[1].written_at == datetime(2026, 11, 1, tzinfo=UTC)
    assert found[0].published_at == datetime(2026, 11, 1, 1, tzinfo=UTC)


def test_a_rollback_is_a_publication(world: World) -> None:
    """The time is that of the last publication."""
    first, _ = world.publish("first"), world.publish("second")
    world.publisher.point(ManifestAt(first), world.source.manifest(first), world.publisher.base())
    found = history(world.source)
    assert [(entry.run_id, entry.is_current) for entry in found] == [("second", False), ("first", True)]
    assert found[1].published_at == world.now


def test_a_build_that_lost_is_no_part_of_it(world: World) -> None:
    """Its manifest exists and was never current, until a rollback makes it so."""
    world.publish("first")
    lost = world.lose("slow")
    assert [entry.run_id for entry in history(world.source)] == ["faster-than-slow", "first"]
    (entry,) = (one for one in entries(world.folder, world.current()) if one.manifest_ref == lost)
    assert (entry.is_published, entry.published_at) == (False, None)
    world.publisher.point(ManifestAt(lost), world.source.manifest(lost), world.publisher.base())
    assert "slow" in [entry.run_id for entry in history(world.source)]


def test_a_build_that_lost_the_race_for_the_first_publication_is_no_part_of_it(world: World) -> None:
    """It is older than all publications, but `_CURRENT` has all of them."""
    base = world.publisher.base()
    manifest = build(world.folder, ROWS, "slow", created=world.now)
    world.passes(minutes=1)
    world.publish("first")
    with pytest.raises(PublishConflictError):
        world.publisher.publish(manifest, base)
    world.publish("second")
    assert [entry.run_id for entry in history(world.source)] == ["second", "first"]


def test_what_was_published_before_the_last_hundred_is_part_of_it(world: World) -> None:
    """`_CURRENT` does not have it any more."""
    first = world.publish("first")
    second, current = world.publish("second"), world.current()
    for _ in range(100):
        current = current.moved(second, "second", world.now)
    world.folder.put(CURRENT, current.encode())
    assert first not in {past.manifest_ref for past in current.history}
    assert [entry.manifest_ref for entry in history(world.source)] == [second, first]


def test_where_another_program_wrote_the_pointer_all_are_taken_for_published(world: World) -> None:
    """Those before its own publications also count, since the rest is unknown."""
    lost = world.lose("slow")
    told = json.loads(world.folder.get(CURRENT).body)
    world.folder.put(CURRENT, json.dumps({key: told[key] for key in ("manifest_ref", "run_id", "updated_at")}).encode())
    assert lost in [entry.manifest_ref for entry in history(world.source)]
    world.publish("next")
    assert lost in [entry.manifest_ref for entry in history(world.source)]


def test_the_current_one_is_part_of_it_whoever_made_it_current(world: World) -> None:
    """This includes a manifest that is not in the history of `_CURRENT`."""
    world.publish("first")
    lost = world.lose("slow")
    told = json.loads(world.folder.get(CURRENT).body)
    world.folder.put(CURRENT, json.dumps({**told, "manifest_ref": lost}).encode())
    assert [entry.run_id for entry in history(world.source) if entry.is_current] == ["slow"]


def test_without_a_pointer_there_is_no_history(world: World) -> None:
    """Without `_CURRENT` it raises."""
    with pytest.raises(ReaderStateError, match="nothing was published yet"):
        history(world.source)
