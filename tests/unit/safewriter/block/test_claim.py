"""A block claims its write in the document: first claims, retries, skips, later epochs, other jobs under the key."""

from __future__ import annotations

import dataclasses

import pytest

from safewriter.errors import (
    FingerprintError,
    StepError,
    UnknownOutcomeError,
    UnsupportedError,
    UsageError,
)
from safewriter.identity import EPOCH_MAX, Run
from safewriter.record.document import NO_CHANGE, CommitPoint, Status
from safewriter.settle.recovery import Cause
from safewriter.tables.delta.commit import Signature
from safewriter.tables.table import UndecidableError
from tests.unit.safewriter.block.claiming import claims, writes
from tests.unit.safewriter.delta_log import append_actions, key_of
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.surroundings import WHOLE_MS
from tests.unit.safewriter.world import World


def test_a_first_claim_is_two_requests_the_marker_before_the_document() -> None:
    """So an open document always has a marker, and a first attempt reads nothing."""
    world = World()
    network = Network()
    job = world.job(network)
    before = world.job().state()
    claimer = job.claimer
    network.sent.clear()

    claimer.announce()
    claim = claimer.claim(before)

    assert [(sent.verb, sent.key) for sent in network.sent] == [
        ("put", f"open/{world.key}/{job.attempt.nonce}"),
        ("create", f"checkpoints/{world.key}.json"),
    ]
    assert not claim.already_committed


def test_a_claim_writes_down_what_a_settler_must_know() -> None:
    """Epoch, owner, prefix, deadline and the table as it was."""
    world = World(CommitPoint.SUCCESS, properties={"delta.x": "y"}, features=("appendOnly",))
    job = world.job()

    document = job.claim().checkpoint.document

    assert (document.status, document.epoch, document.owner) == (Status.IN_PROGRESS, 1, job.attempt.nonce)
    assert (document.table, document.commit_point) == ("s3://lake/accommodations", CommitPoint.SUCCESS)
    attempt = document.attempt
    assert attempt.prefix == job.attempt.file_prefix(world.key, 1)
    assert (attempt.deadline_ms, attempt.started_ms) == (world.now_ms + WHOLE_MS, world.now_ms)
    assert (attempt.version_before, attempt.features, attempt.properties) == (1, ("appendOnly",), {"delta.x": "y"})
    assert attempt.table_id == job.state().table_id
    assert (attempt.request_id, attempt.run_id) == ("request", f"run-of-{job.attempt.nonce}")


def _landed_without_document(world: World) -> int:
    """Land a commit, then empty the checkpoint bucket; return the commit's version."""
    job = world.job().begin().land()
    world.owner_dies()
    for listed in list(world.bucket.list("")):
        world.bucket.delete(listed.key)
    return job.slot


def test_a_write_that_the_table_holds_is_found_by_one_request() -> None:
    """An open document would name a version after the commit, and its settler would not look before that version."""
    world = World()
    version = _landed_without_document(world)
    network = Network()
    job = world.job(network)
    before = job.state()
    job.claimer.announce()
    network.sent.clear()

    claim = job.claimer.claim(before, version)

    assert claim.already_committed
    assert [sent.verb for sent in network.sent if sent.mutates] == ["create"]
    document = world.document
    assert (document.status, document.epoch, document.attempt.commit_version) == (Status.COMMITTED, 2, version)
    assert document.reason == "retry: the table holds it, and its document was gone"


@pytest.mark.parametrize("seen", [True, False])
def test_a_write_that_was_undone_and_brought_back_is_skipped(*, seen: bool) -> None:
    """Also if the session no longer sees the write, in the last versions: the document names its undone commit."""
    world = World()
    undone = world.job().begin().land()
    world.grace_passes()
    world.settle(Cause.EXCEPTION)
    version = world.log.commit([{"commitInfo": {"operation": "RESTORE"}}, *(file.add() for file in undone.files)])
    job = world.job()
    job.claimer.announce()

    claim = job.claimer.claim(job.state(), undone.slot if seen else None)

    assert claim.already_committed
    assert (world.document.status, world.document.attempt.commit_version) == (Status.COMMITTED, version)


def test_with_success_nobody_guesses_whether_rows_that_were_brought_back_should_stay() -> None:
    """The error says how to decide, and nothing is claimed."""
    world = World(CommitPoint.SUCCESS)
    undone = world.job().begin().land()
    world.grace_passes()
    world.settle(Cause.KILLED)
    world.log.commit([{"commitInfo": {"operation": "RESTORE"}}, *(file.add() for file in undone.files)])
    job = world.job()
    job.claimer.announce()

    with pytest.raises(UnknownOutcomeError, match=r"it was undone, as its document .* brought its rows back.* Look at"):
        job.claimer.claim(job.state(), undone.slot)

    assert (world.document.status, world.document.epoch) == (Status.ROLLED_BACK, 1)


@pytest.mark.parametrize("gone", [True, False])
def test_an_undone_write_of_which_the_log_does_not_tell_is_refused_for_good(*, gone: bool) -> None:
    """Versions since the undo are gone, or some of the files are back: no later try would know more, so none is due."""
    world = World()
    undone = world.job().begin().land()
    world.grace_passes()
    world.settle(Cause.EXCEPTION)
    world.log.commit([{"commitInfo": {"operation": "RESTORE"}}, undone.files[0].add()])
    job = world.job()
    job.claimer.announce()
    before = job.state()
    if gone:
        for version in range(world.log.head):
            world.lake.delete(key_of(version))

    with pytest.raises(UnknownOutcomeError, match=r"s3://lake/.* [Uu]se a new clientToken") as raised:
        job.claimer.claim(before)

    assert (raised.value.retryable, raised.value.exit_code) == (False, 1)
    assert (world.document.status, world.document.epoch) == (Status.ROLLED_BACK, 1)


def test_a_committed_write_is_skipped_whatever_the_table_allows_by_now() -> None:
    """A neighbour may have made it append-only since: only a block that is to write must be undoable."""
    world = World(CommitPoint.SUCCESS)
    with pytest.raises(UnsupportedError, match=r"could not be undone \(it is append-only\)"):
        world.job().claimer.claim(world.job().state(), None, "it is append-only")
    assert world.checkpoints.read(world.key) is None
    assert world.job().begin().land().success()
    job = world.job()
    job.claimer.announce()
    assert job.claimer.claim(job.state(), None, "it is append-only").already_committed


def test_a_write_that_was_rolled_back_is_not_claimed_in_a_table_that_allows_no_undo_any_more() -> None:
    """The document stays as it is."""
    world = World(CommitPoint.SUCCESS)
    world.job().begin().land()
    world.grace_passes()
    world.settle(Cause.KILLED)
    job = world.job()
    job.claimer.announce()
    with pytest.raises(UnsupportedError, match="append-only"):
        job.claimer.claim(job.state(), None, "it is append-only")
    assert (world.document.status, world.document.epoch) == (Status.ROLLED_BACK, 1)


def test_a_transaction_that_no_attempt_has_keeps_no_retry_away() -> None:
    """Another writer has put it there; no epoch beyond it exists that Delta could read."""
    world = World()
    version = world.log.append(txn=(world.key, 2**63 - 1))
    job = world.job()
    before = job.state()
    job.claimer.announce()

    claim = job.claimer.claim(before, version)

    assert (claim.already_committed, world.document.epoch) == (False, 1)


def test_nothing_is_claimed_beyond_the_last_epoch() -> None:
    """Delta would not see its transaction as ours, and its rows would be written again."""
    world = World()
    version = world.log.append(txn=(world.key, EPOCH_MAX))
    job = world.job()
    before = job.state()
    job.claimer.announce()

    with pytest.raises(UsageError, match="no run makes"):
        job.claimer.claim(before, version)
    assert world.checkpoints.read(world.key) is None


def test_a_write_that_was_rolled_back_and_that_the_table_holds_is_found_by_one_request() -> None:
    """Somebody has restored an old document."""
    world = World()
    world.job().begin()
    world.owner_dies()
    world.settle(Cause.KILLED)
    job = world.job()
    version = world.log.append(txn=(world.key, 2))
    before = job.state()

    claim = job.claimer.claim(before, version)

    assert claim.already_committed
    assert [one.epoch for one in world.document.attempts] == [1, 3]
    assert world.document.attempt.commit_version == version


def test_a_claim_takes_an_epoch_above_what_the_table_knows_whatever_the_document_says() -> None:
    """Else a fence from before the claim would pass for one of this attempt."""
    world = World()
    world.job().begin()
    world.owner_dies()
    world.settle(Cause.KILLED)
    job = world.job()
    fence = {"operation": "SAFEWRITER FENCE", "userMetadata": Signature(world.key, 7).to_text()}
    version = world.log.commit(append_actions((), txn=(world.key, 7), **fence))

    assert not job.claimer.claim(job.state(), version).already_committed
    assert world.document.epoch == 8


def test_a_write_that_the_table_names_no_more_is_not_claimed() -> None:
    """The table is being changed, so its content is unknown."""
    world = World()
    version = _landed_without_document(world)
    job = world.job()
    before = job.state()
    world.lake.delete(key_of(version))

    with pytest.raises(UndecidableError, match="is gone: the table was dropped or replaced"):
        job.claimer.claim(before, version)
    assert world.checkpoints.read(world.key) is None


def test_a_committed_write_is_not_claimed() -> None:
    """The retry has nothing to do; it records in the document that it skipped the write, and nothing else."""
    world = World()
    assert world.job().run()
    before = world.document

    retry = world.job()
    claim = retry.claim()

    assert claim.already_committed
    after = world.document
    deliveries = (*before.deliveries, f"run-of-{retry.attempt.nonce}")
    assert after == dataclasses.replace(before, deliveries=deliveries, nonce=after.nonce)


@pytest.mark.parametrize("first", ["has written it", "has skipped it", "had nothing to change"])
def test_a_second_block_of_one_name_in_one_run_is_refused(first: str) -> None:
    """A skip would lose its write. The first block may be in another process, so the document records it."""
    world = World()
    one = world.job()
    if first == "had nothing to change":
        held = one.claim().checkpoint
        done = held.document.moved(Status.COMMITTED, reason=NO_CHANGE, settled_ms=0)
        world.checkpoints.replace(held, done)
    else:
        assert one.run()
    if first == "has skipped it":
        one = world.job()
        assert one.claim().already_committed
    before = world.document

    with pytest.raises(StepError, match="step of its own"):
        claims(world.job(), write=one.claimer.write)

    assert world.document == before


def test_a_skip_that_another_attempt_has_come_between_is_tried_again() -> None:
    """Two retries skip at once, and each is recorded: the one that lost the document reads it again."""
    world = World()
    assert world.job().run()
    other = world.job()

    def come_between(number: int) -> None:
        if number == 3:  # of create, read and replace
            other.claim()

    job = world.job(Network(before=come_between))

    assert job.claimer.claim(other.state()).already_committed

    assert world.document.deliveries[-2:] == (f"run-of-{other.attempt.nonce}", f"run-of-{job.attempt.nonce}")


def test_a_second_block_is_known_also_when_another_attempt_has_skipped_the_write_since() -> None:
    """Two attempts at once do not hide each other's blocks."""
    world = World()
    one, other = world.job(), world.job()
    assert one.run()
    assert claims(other).already_committed

    with pytest.raises(StepError):
        claims(world.job(), write=one.claimer.write)


def test_a_block_that_was_settled_by_somebody_else_is_a_first_one_all_the_same() -> None:
    """It may yet succeed, so a second block of its name is not skipped; a retry of the run is."""
    world = World()
    one = world.job().begin().land()
    assert world.settle().status is Status.COMMITTED

    with pytest.raises(StepError):
        claims(world.job(), write=one.claimer.write)
    assert claims(world.job()).already_committed


def test_a_run_may_try_again_what_it_has_rolled_back() -> None:
    """The block left nothing in the table, so its name is not used up."""
    world = World()
    one = world.job()
    one.begin()
    world.settle()

    assert claims(world.job(), write=one.claimer.write).checkpoint.document.epoch == 2


def test_a_rolled_back_write_is_claimed_with_the_next_epoch() -> None:
    """No settling, no waiting: marker, failed create, read, compare-and-swap."""
    world = World()
    world.job().begin()
    world.settle()
    network = Network()
    job = world.job(network)

    document = job.claim().checkpoint.document

    assert (document.epoch, document.owner, len(document.attempts)) == (2, job.attempt.nonce, 2)
    assert writes(network) == [("put", "open"), ("create", "checkpoints"), ("replace", "checkpoints")]
    assert document.attempt.prefix == job.attempt.file_prefix(world.key, 2)


def test_another_job_under_the_same_key_is_a_usage_error() -> None:
    """It is refused under any status, and never counts as done."""
    for ended in (False, True):
        world = World()
        if ended:
            world.job().run()
        else:
            world.job().begin()
        before = world.document
        job = world.job()
        other = dataclasses.replace(world.write, run=Run("run", "id", None, "another job"))

        with pytest.raises(FingerprintError, match="another script"):
            claims(job, write=other)

        assert world.document == before


def test_a_step_of_the_same_process_may_claim_again() -> None:
    """An attempt that counted as dead and was settled claims the next epoch, with other file names."""
    world = World()
    job = world.job().begin()
    first = job.document.attempt.prefix
    world.owner_dies()
    world.settle(network=None)

    second = job.claim().checkpoint.document

    assert (second.epoch, second.owner) == (2, job.attempt.nonce)
    assert second.attempt.prefix != first


def test_a_marker_is_put_for_each_attempt() -> None:
    """Also if there is nothing to claim: the attempt removes its own marker."""
    world = World()
    world.job().run()

    world.job().claim()

    assert len(world.marked()) == 2
