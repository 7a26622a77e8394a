from __future__ import annotations

import dataclasses
import json

import pytest

from safewriter.errors import UnreadableCheckpointError
from safewriter.objects import PreconditionFailed, StoreError
from safewriter.record.checkpoints import FINISHED, Checkpoints, past_grace
from safewriter.record.document import Status
from safewriter.record.liveness import GRACE_MS, LEASE_MS
from safewriter.tables.iceberg.catalogs import without_secrets
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.world import World


def test_what_was_created_is_read() -> None:
    """The document comes back with its ETag and the store's clock."""
    world = World()
    held = world.job().claim().held

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
    first = world.job().claim().held.document

    assert world.checkpoints.create(dataclasses.replace(first, owner="other")) is None
    assert world.document.owner == first.owner


def test_of_two_changes_of_one_document_one_wins() -> None:
    """The second compare-and-swap on the same reading loses."""
    world = World()
    held = world.job().claim().held

    won = world.checkpoints.replace(held, held.document.moved(Status.COMMITTED))
    lost = world.checkpoints.replace(held, held.document.moved(Status.ROLLED_BACK))

    assert won is not None
    assert lost is None
    assert world.document.status is Status.COMMITTED


def test_writing_the_same_document_again_is_a_change() -> None:
    """Else a stale reader would win with the ETag of an equal body."""
    world = World()
    held = world.job().claim().held
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
    """A marker says what its attempt is, and its removal leaves the others'."""
    world = World()
    one, two = world.job(), world.job()
    for job in (one, two):
        job.claimer.mark()
    world.checkpoints.renew_lease(world.key, one.attempt.nonce)

    assert world.marked() == (one.attempt.nonce, two.attempt.nonce)
    marked = next(iter(world.checkpoints.marked()))
    announced = world.checkpoints.announced(marked)
    assert announced is not None
    assert (announced.marker.run_key, announced.marker.nonce) == ("run", one.attempt.nonce)
    assert (announced.since, announced.now) == (world.now(), world.now())
    world.checkpoints.unmark(world.key, one.attempt.nonce)
    assert world.marked() == (two.attempt.nonce,)
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


def test_a_touched_document_says_the_same_and_cannot_be_claimed_as_it_was_read_before() -> None:
    """The sweeper closes the door behind an attempt that may still send its claim."""
    world = World()
    world.job().begin()
    world.settle()
    before = world.checkpoints.read(world.key)
    assert before is not None
    assert world.checkpoints.touch(before)
    assert world.document == dataclasses.replace(before.document, nonce=world.document.nonce)
    assert world.checkpoints.replace(before, before.document) is None


def test_a_lease_is_dated_by_the_store() -> None:
    """The writer's own clock plays no part."""
    world = World()
    job = world.job()
    job.claim()
    world.now_ms += 1_000
    world.checkpoints.renew_lease(world.key, job.attempt.nonce)
    then = world.now()
    world.now_ms += 5_000
    stored = world.checkpoints.read(world.key)

    assert stored is not None
    assert world.checkpoints.sighting(stored).last_sign == then


@pytest.mark.parametrize(("passed_ms", "dead"), [(0, False), (LEASE_MS, False), (LEASE_MS + 1, True)])
def test_an_owner_without_a_sign_of_life_is_dead(passed_ms: int, dead: object) -> None:
    """Without a lease the document itself is the last sign of life."""
    world = World()
    world.job().claim()
    world.now_ms += passed_ms
    stored = world.checkpoints.read(world.key)

    assert stored is not None
    assert world.checkpoints.sighting(stored).is_dead is dead


@pytest.mark.parametrize(("passed_ms", "dead"), [(LEASE_MS, False), (LEASE_MS + 1, True)])
def test_a_renewed_lease_keeps_an_owner_alive(passed_ms: int, dead: object) -> None:
    """What counts is the newest sign of life."""
    world = World()
    job = world.job()
    job.claim()
    world.now_ms += LEASE_MS
    world.checkpoints.renew_lease(world.key, job.attempt.nonce)
    world.now_ms += passed_ms
    stored = world.checkpoints.read(world.key)

    assert stored is not None
    assert world.checkpoints.sighting(stored).is_dead is dead


def test_the_lease_of_another_attempt_says_nothing() -> None:
    """A duplicate's sign of life does not keep a dead owner alive."""
    world = World()
    world.job().claim()
    world.owner_dies()
    world.checkpoints.renew_lease(world.key, "another")
    stored = world.checkpoints.read(world.key)

    assert stored is not None
    assert world.checkpoints.sighting(stored).is_dead


@pytest.mark.parametrize(("over_ms", "dead"), [(GRACE_MS, False), (GRACE_MS + 1, True)])
def test_nobody_lives_past_deadline_and_grace(over_ms: int, dead: object) -> None:
    """A lease that is renewed after that proves nothing."""
    world = World()
    job = world.job(deadline_ms=100_000)
    job.claim()
    world.now_ms += 100_000 + over_ms
    world.checkpoints.renew_lease(world.key, job.attempt.nonce)
    stored = world.checkpoints.read(world.key)

    assert stored is not None
    assert world.checkpoints.sighting(stored).is_dead is dead
    assert past_grace(job.document.attempt, world.now()) is dead


def test_without_a_deadline_the_grace_of_an_open_attempt_never_passes() -> None:
    """No deadline is not a deadline of zero."""
    world = World()
    job = world.job(deadline_ms=None)
    job.claim()
    world.now_ms += 10**12

    assert not past_grace(job.document.attempt, world.now())


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
    """A column of the name "closed" makes no tombstone."""
    world = World()
    note = f'{{"metaData":{word}}}\n{{"note":{{"nonce":"a"}}}}\n'.encode()
    world.bucket.create(world.checkpoints.note_key("sw-x", 1), note)

    assert world.checkpoints.close_creation("sw-x", 1) == note


def test_a_note_that_cannot_be_read_is_an_error() -> None:
    """Nothing may be concluded from it."""

    class Hidden(MemoryObjectStore):
        def get(self, key: str) -> None:
            return None

    hidden = Hidden()
    world = World()
    world.checkpoints.store = hidden
    hidden.create(world.checkpoints.note_key("sw-x", 1), b"note")

    with pytest.raises(StoreError, match="cannot be read"):
        world.checkpoints.close_creation("sw-x", 1)


def test_the_note_of_a_landed_creation_is_removed() -> None:
    """Its slot is taken, so it has no more to say."""
    world = World()
    world.checkpoints.close_creation("sw-x", 1)

    world.checkpoints.forget_note("sw-x", 1)

    assert world.bucket.contents() == {}


def test_the_audit_log_has_one_line_for_an_event() -> None:
    """One object each, since S3 cannot append, and one line of JSON in it."""
    world = World()
    world.job().begin()
    document = world.settle()

    (line,) = world.bucket.contents()[f"audit/{world.key}-1-rolled_back.jsonl"].splitlines()

    found = json.loads(line)
    assert (found["event"], found["table"], found["reason"]) == ("rolled_back", document.table, document.reason)
    assert found["attempt"]["nonce"] == document.owner


def tag(world: World) -> str:
    return world.bucket.tags[f"checkpoints/{world.key}.json"]


def test_only_a_document_that_is_finished_may_expire() -> None:
    """It bears the tag when it is settled and cleaned up after, however it ended; a new claim takes the tag away."""
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
    assert world.checkpoints.touch(stored)
    assert tag(world) == FINISHED


def test_a_tombstone_is_finished() -> None:
    """That of a write which was never claimed, and that of a creation which can never land."""
    world = World(existing=False)
    job = world.job()
    job.claimer.mark()
    (mark,) = world.checkpoints.marked()
    announced = world.checkpoints.announced(mark)
    assert announced is not None
    world.checkpoints.create(announced.marker.document(Status.ROLLED_BACK, "never claimed", 1, "sweeper"))
    assert tag(world) == FINISHED
    assert world.checkpoints.close_creation(world.key, 1) is None
    assert world.bucket.tags[world.checkpoints.note_key(world.key, 1)] == FINISHED


class Untaggable(MemoryObjectStore):
    """A store whose caller may write objects and set no tags."""

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
    finished = world.job().claim().held.document.moved(Status.COMMITTED, cleaned=True)
    checkpoints = Checkpoints(Untaggable())
    held = checkpoints.create(finished)
    assert held is not None
    assert checkpoints.replace(held, finished) is not None
    assert checkpoints.create(finished) is None
    assert checkpoints.close_creation(world.key, 1) is None


@pytest.mark.parametrize(("denied", "tries"), [(True, [FINISHED, ""]), (False, [FINISHED])])
def test_a_refusal_that_is_not_about_the_tag_is_one(tries: list[str], *, denied: bool) -> None:
    """Of a caller who may not write at all; and a store that does not answer is not asked again without the tag."""
    finished = World().job().claim().held.document.moved(Status.COMMITTED, cleaned=True)
    asked: list[str] = []

    class Refusing(MemoryObjectStore):
        def create(self, key: str, body: bytes, *, tag: str = "") -> str:
            asked.append(tag)
            raise StoreError("no", denied=denied)

    with pytest.raises(StoreError):
        Checkpoints(Refusing()).create(finished)
    assert asked == tries


def test_a_marker_says_how_the_catalog_is_reached() -> None:
    """Who settles the write without its document could not ask the table otherwise; no secret is in it."""
    found = without_secrets({"type": "rest", "uri": "https://catalog", "credential": "id:secret"})
    assert found == {"type": "rest", "uri": "https://catalog"}
    world = World()
    job = world.job()
    job.checkpoints = job.checkpoints.announcing(found)
    job.claimer.mark()
    (mark,) = world.checkpoints.marked()
    announced = world.checkpoints.announced(mark)
    assert announced is not None
    assert announced.marker.catalog == found
    made = announced.marker.document(Status.ROLLED_BACK, "never claimed", 1, "sweeper")
    assert made.attempt.catalog == found


def test_all_markers_are_one_listing() -> None:
    """Only a start in the middle needs a second one, for those before it."""
    network, world = Network(), World()
    job = world.job().begin()
    checkpoints = Checkpoints(network.store(world.bucket))

    assert [marked.nonce for marked in checkpoints.marked()] == [job.attempt.nonce]
    assert [sent.verb for sent in network.sent] == ["list"]


def test_a_closed_creation_is_no_note() -> None:
    """Who asks how the table looks finds nothing of the attempt that can create it no more."""
    world = World(existing=False)
    world.job().claim()
    world.checkpoints.close_creation(world.key, 1)

    assert world.checkpoints.note(world.key, 1) is None


def test_after_the_grace_no_lease_is_read() -> None:
    """Nothing that it could say counts, and a sweep looks at many."""
    network, world = Network(), World()
    world.job().begin()
    world.grace_passes()
    checkpoints = Checkpoints(network.store(world.bucket))
    stored = checkpoints.read(world.key)
    assert stored is not None

    assert checkpoints.sighting(stored).is_dead
    assert [sent.key for sent in network.sent] == [f"checkpoints/{world.key}.json"]
