"""The checkpoint bucket keeps documents by compare-and-swap, a marker for each attempt, and the audit log."""

from __future__ import annotations

import dataclasses
import json

import pytest

from safewriter.errors import UnreadableCheckpointError
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import Status
from safewriter.tables.iceberg.catalogs import told
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.world import World


def test_what_was_created_is_read() -> None:
    """The document comes back with its ETag and the store's clock."""
    world = World()
    held = world.job().claim().checkpoint

    stored = world.checkpoints.read(world.key)

    assert stored is not None
    assert stored.etag == held.etag
    assert (stored.document.owner, stored.document.status) == (held.document.owner, Status.IN_PROGRESS)
    assert stored.server_date == stored.last_modified == world.now()


def test_there_may_be_no_document() -> None:
    """Absent is a state of its own."""
    assert World().checkpoints.read("sw-none") is None


def test_of_two_first_documents_one_wins() -> None:
    """A second creation loses, and changes nothing."""
    world = World()
    first = world.job().claim().checkpoint.document

    assert world.checkpoints.create(dataclasses.replace(first, owner="other")) is None
    assert world.document.owner == first.owner


def test_of_two_changes_of_one_document_one_wins() -> None:
    """The second compare-and-swap on the same reading loses."""
    world = World()
    held = world.job().claim().checkpoint

    won = world.checkpoints.replace(held, held.document.moved(Status.COMMITTED))
    lost = world.checkpoints.replace(held, held.document.moved(Status.ROLLED_BACK))

    assert won is not None
    assert lost is None
    assert world.document.status is Status.COMMITTED


def test_writing_the_same_document_again_is_a_change() -> None:
    """Otherwise a stale reader would win with the ETag of an equal body."""
    world = World()
    held = world.job().claim().checkpoint
    first = world.checkpoints.replace(held, held.document.moved(Status.COMMITTED))
    assert first is not None

    second = world.checkpoints.replace(first, first.document)

    assert second is not None
    assert second.etag != first.etag
    assert world.checkpoints.replace(first, first.document) is None


def test_an_unreadable_document_is_left_as_it_is() -> None:
    """A document of a later version is refused, not interpreted."""
    world = World()
    world.bucket.put("checkpoints/sw-x.json", b'{"schema_version": 99}')

    with pytest.raises(UnreadableCheckpointError, match="99"):
        world.checkpoints.read("sw-x")


def test_each_attempt_has_its_own_marker() -> None:
    """A marker describes its attempt. Its removal leaves the others' markers, and the lease, which expires alone."""
    world = World()
    one, two = world.job(), world.job()
    for job in (one, two):
        job.claimer.announce()
    world.checkpoints.renew_lease(world.key, one.attempt.nonce)

    assert world.marked() == (one.attempt.nonce, two.attempt.nonce)
    marked = next(iter(world.checkpoints.marked()))
    announced = world.checkpoints.announced(marked)
    assert announced is not None
    assert (announced.marker.run_key, announced.marker.nonce) == ("run", one.attempt.nonce)
    assert (announced.since, announced.now) == (world.now(), world.now())
    world.checkpoints.unmark(world.key, one.attempt.nonce)
    assert world.marked() == (two.attempt.nonce,)
    assert f"leases/{world.key}/{one.attempt.nonce}" in world.bucket.contents()
    assert world.checkpoints.announced(marked) is None


@pytest.mark.parametrize("start", ["", "sw-3", "sw-z"])
def test_markers_are_listed_once_each_wherever_the_listing_begins(start: str) -> None:
    """From the start to the end, then from the beginning to the start."""
    world = World()
    keys = [f"sw-{number}" for number in range(1, 6)]
    for key in keys:
        world.bucket.put(f"open/{key}/a", b"")
    found = [marked.write_key for marked in world.checkpoints.marked(start=start)]
    assert sorted(found) == keys
    assert found[0] == ("sw-3" if start == "sw-3" else "sw-1")


def test_the_audit_log_has_one_line_for_an_event() -> None:
    """One object each, since S3 cannot append, and one line of JSON in it."""
    world = World()
    world.job().begin()
    document = world.settle()

    (line,) = world.bucket.contents()[f"audit/{world.key}-1-rolled_back.jsonl"].splitlines()

    found = json.loads(line)
    assert (found["event"], found["table"], found["reason"]) == ("rolled_back", document.table, document.reason)
    assert found["attempt"]["nonce"] == document.owner


def test_a_marker_says_which_catalog_it_is() -> None:
    """As the document does; it holds no address and no secret."""
    found = told({"type": "rest", "uri": "https://catalog", "credential": "id:secret"})
    assert found == {"type": "rest"}
    world = World()
    job = world.job()
    job.checkpoints = job.checkpoints.announcing(found)
    job.claimer.announce()
    (mark,) = world.checkpoints.marked()
    announced = world.checkpoints.announced(mark)
    assert announced is not None
    assert announced.marker.catalog == found
    made = announced.marker.document(Status.ROLLED_BACK, "never claimed", 1, "sweeper")
    assert made.attempt.catalog == found


def test_all_markers_are_one_listing() -> None:
    """Only a start in the middle needs a second listing, for the markers before it."""
    network, world = Network(), World()
    job = world.job().begin()
    checkpoints = Checkpoints(network.store(world.bucket))

    assert [marked.nonce for marked in checkpoints.marked()] == [job.attempt.nonce]
    assert [sent.verb for sent in network.sent] == ["list"]


@pytest.mark.parametrize("folder", ["checkpoints", "open"])
def test_an_object_that_tells_of_another_write_is_damage(folder: str) -> None:
    """A copy below another name would be settled as that other write."""
    world = World()
    job = world.job().begin()
    name = ".json" if folder == "checkpoints" else f"/{job.attempt.nonce}"
    other = f"sw-{'0' * 32}"
    world.bucket.put(f"{folder}/{other}{name}", world.bucket.contents()[f"{folder}/{world.key}{name}"])
    with pytest.raises(UnreadableCheckpointError, match=f"{folder}/{other}{name} tells of .*{world.key}"):
        if folder == "checkpoints":
            world.checkpoints.read(other)
        else:
            world.checkpoints.announced(next(world.checkpoints.markers_of(other)))
