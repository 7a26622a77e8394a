from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.deadline import Deadline
from safewriter.errors import (
    AnotherAttemptError,
    FingerprintError,
    StepError,
    TooLateError,
    TryAgainError,
    UnknownOutcomeError,
)
from safewriter.identity import Run
from safewriter.objects import StoreError
from safewriter.record.document import NO_CHANGE, CommitPoint, Status
from safewriter.record.liveness import GRACE_MS, LEASE_MS
from safewriter.schedule import Schedule
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.failing import Fault, Network
from tests.unit.safewriter.invariants import check, documents
from tests.unit.safewriter.world import LEAD_MS, WHOLE_MS, Job, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.block.claim import Claim


def claims(job: Job, **changes: Any) -> Claim:
    """Claim with some parts of the claimer changed, the marker being there already."""
    return dataclasses.replace(job.claimer, **changes).claim(job.state())


def beating(world: World, owners: list[Job]) -> Callable[[float], None]:
    """Return a nap during which the first of the owners renews its lease."""

    def sleep(seconds: float) -> None:
        world.sleep(seconds)
        world.checkpoints.renew_lease(world.key, owners[0].attempt.nonce)

    return sleep


def writes(network: Network) -> list[tuple[str, str]]:
    return [(sent.verb, sent.key.split("/")[0]) for sent in network.sent if sent.mutates]


def test_a_first_claim_is_two_requests_the_marker_before_the_document() -> None:
    """So an open document always has a marker, and a first attempt reads nothing."""
    world = World()
    network = Network()
    job = world.job(network)
    before = world.job().state()
    claimer = job.claimer
    network.sent.clear()

    claimer.mark()
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

    document = job.claim().held.document

    assert (document.status, document.epoch, document.owner) == (Status.IN_PROGRESS, 1, job.attempt.nonce)
    assert (document.table, document.commit_point) == ("s3://lake/accommodations", CommitPoint.SUCCESS)
    attempt = document.attempt
    assert attempt.prefix == job.attempt.file_prefix(world.key, 1)
    assert (attempt.deadline_ms, attempt.started_ms) == (world.now_ms + WHOLE_MS, world.now_ms)
    assert (attempt.version_before, attempt.features, attempt.properties) == (1, ("appendOnly",), {"delta.x": "y"})
    assert attempt.table_id == job.state().table_id
    assert (attempt.request_id, attempt.run_id) == ("request", f"run-of-{job.attempt.nonce}")


def test_a_committed_write_is_not_claimed() -> None:
    """The retry learns that it has nothing to do, and leaves in the document that it has skipped the write; no more."""
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
    """Skipped, its write would be lost; the first may be of another process of the run, so the document tells."""
    world = World()
    one = world.job()
    if first == "had nothing to change":
        held = one.claim().held
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
    """Two retries skip at once, and each is noted: the one that lost the document reads it again."""
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
    """It may yet end well, so a second one of its name is not skipped; a retry of the run is."""
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

    assert claims(world.job(), write=one.claimer.write).held.document.epoch == 2


def test_a_rolled_back_write_is_claimed_with_the_next_epoch() -> None:
    """No settling, no waiting: marker, failed create, read, compare-and-swap."""
    world = World()
    world.job().begin()
    world.settle()
    network = Network()
    job = world.job(network)

    document = job.claim().held.document

    assert (document.epoch, document.owner, len(document.attempts)) == (2, job.attempt.nonce, 2)
    assert writes(network) == [("put", "open"), ("create", "checkpoints"), ("replace", "checkpoints")]
    assert document.attempt.prefix == job.attempt.file_prefix(world.key, 2)


def test_another_job_under_the_same_key_is_a_usage_error() -> None:
    """It is refused whatever the status, and never taken for done."""
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


# -- whoever owns the write now ----------------------------------------------------------------------------------------


def test_a_live_owner_is_left_alone() -> None:
    """Its lease is renewed while we look, so this attempt ends with "try again" and has changed nothing."""
    world = World()
    owner = world.job().begin()
    before = world.bucket.contents()[f"checkpoints/{world.key}.json"], world.lake.contents()
    job = world.job()
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        world.sleep(seconds)
        if len(naps) == 5:
            world.checkpoints.renew_lease(world.key, owner.attempt.nonce)

    with pytest.raises(AnotherAttemptError, match=f"{owner.attempt.nonce}.*request.*is alive") as caught:
        claims(job, sleep=sleep)

    assert caught.value.exit_code == 75
    assert len(naps) == 5
    assert (world.bucket.contents()[f"checkpoints/{world.key}.json"], world.lake.contents()) == before


def test_an_owner_that_renewed_its_lease_long_ago_is_waited_for() -> None:
    """A lease that is there but is not renewed runs out, and then its owner is dead."""
    world = World()
    owner = world.job().begin()
    world.now_ms += 5_000
    world.checkpoints.renew_lease(world.key, owner.attempt.nonce)
    world.now_ms += 5_000
    began_ms = world.now_ms

    document = world.job().claim().held.document

    assert (document.epoch, document.status) == (2, Status.IN_PROGRESS)
    assert LEASE_MS - 6_000 <= world.now_ms - began_ms <= LEASE_MS
    check(world)


def test_an_owner_whose_lease_has_expired_is_settled_at_once() -> None:
    """By the store's clock, without a nap."""
    world = World()
    world.job().begin()
    world.owner_dies()

    def sleep(_: float) -> None:
        raise AssertionError

    document = claims(world.job(), sleep=sleep).held.document

    assert (document.epoch, document.status) == (2, Status.IN_PROGRESS)
    assert [moved["status"] for moved in documents(world)][:2] == ["in_progress", "rolled_back"]
    check(world)


def test_a_dead_owner_whose_commit_has_landed_leaves_nothing_to_do() -> None:
    """The retry settles it as committed and is skipped."""
    world = World()
    world.job().begin().land()
    world.owner_dies()

    claim = world.job().claim()

    assert claim.already_committed
    assert (claim.held.document.status, claim.held.document.epoch) == (Status.COMMITTED, 1)
    assert claim.held.document.attempt.settled_by == "retry"
    check(world)


def test_a_deadline_and_its_grace_end_an_owner_that_still_renews_its_lease() -> None:
    """Nothing of it can be on its way any more."""
    world = World()
    owner = world.job(deadline_ms=100_000).begin()
    world.now_ms += 100_000 + GRACE_MS + 1
    world.checkpoints.renew_lease(world.key, owner.attempt.nonce)

    assert world.job().claim().held.document.epoch == 2


def test_an_owner_that_is_settled_while_we_wait_makes_room() -> None:
    """The document changes, so it is read again."""
    world = World()
    world.job().begin()
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        world.settle()

    assert claims(world.job(), sleep=sleep).held.document.epoch == 2
    assert len(naps) == 1


def test_an_attempt_that_was_faster_is_not_settled() -> None:
    """Between our look at the dead owner and our settling another retry has claimed, and it lives."""
    world = World()
    world.job().begin()
    world.owner_dies()
    faster: list[Job] = []

    def before(_: int) -> None:
        # The look at the lease has decided that the owner is dead; what comes next is the settling.
        keys = [sent.key for sent in network.sent[-2:]]
        if not faster and keys[0].startswith("leases") and keys[-1].startswith("checkpoints"):
            faster.append(world.job())
            faster[0].begin()

    network = Network(before=before)
    job = world.job(network)

    with pytest.raises(TryAgainError):
        claims(
            job,
            sleep=beating(world, faster),
        )

    assert faster
    assert (world.document.epoch, world.document.owner) == (2, faster[0].attempt.nonce)
    assert world.document.status is Status.IN_PROGRESS


def test_waiting_is_bounded() -> None:
    """An owner that is neither dead nor alive (its clock stands still) is given up on."""
    world = World()
    world.job().begin()
    naps: list[float] = []

    with pytest.raises(AnotherAttemptError):
        claims(world.job(), sleep=naps.append)

    assert 0 < len(naps) <= 2 * LEASE_MS // 1000


def test_a_write_whose_truth_cannot_be_found_out_is_not_claimed() -> None:
    """The error of the settling goes on; nothing is written twice on a guess."""
    world = World()
    world.job().begin()
    world.owner_dies()
    world.append_foreign()
    world.append_foreign()
    world.hide(key_of(2))

    with pytest.raises(UnknownOutcomeError):
        world.job().claim()

    assert world.document.status is Status.UNKNOWN


# -- too late ----------------------------------------------------------------------------------------------------------


def ending(world: World, left_ms: int) -> Schedule:
    return Schedule(Deadline(world.now_ms + left_ms, world.now_ms - 100_000, world.clock), LEAD_MS)


@pytest.mark.parametrize("left_ms", [LEAD_MS, 0, -1])
def test_too_late_for_a_marker_is_too_late(left_ms: int) -> None:
    """Nothing is written at all."""
    world = World()
    job = world.job()

    with pytest.raises(TooLateError, match="too late to begin"):
        dataclasses.replace(job.claimer, schedule=ending(world, left_ms)).mark()

    assert world.bucket.contents() == {}


def test_one_millisecond_before_the_lead_there_is_time() -> None:
    """The boundary belongs to too late."""
    world = World()
    claimer = dataclasses.replace(world.job().claimer, schedule=ending(world, LEAD_MS + 1))

    claimer.mark()
    assert claimer.claim(world.job().state()).held.document.epoch == 1


def test_too_late_for_the_first_document_is_too_late() -> None:
    """Looking at the table can take its time, so the clock is looked at again."""
    world = World()

    with pytest.raises(TooLateError):
        claims(world.job(), schedule=ending(world, LEAD_MS))

    assert world.bucket.contents() == {}


@pytest.mark.parametrize("read", [1, 2, 3])
def test_after_reading_the_document_the_clock_is_looked_at_again(read: int) -> None:
    """An attempt that froze over its reading must not claim what others have settled and cleaned meanwhile."""
    world = World()
    world.job().begin()
    if read < 3:
        world.settle()
    else:
        world.owner_dies()  # settling it takes its reads too
    body = world.document

    def before(_: int) -> None:
        if network.sent[-1].verb == ("create" if read == 1 else "get"):
            world.now_ms += WHOLE_MS * (read < 3 or network.sent[-1].key.startswith("leases"))

    network = Network(before=before)
    job = world.job(network)

    with pytest.raises(TooLateError):
        claims(job)

    assert world.document.epoch == 1
    assert (world.document == body) is (read < 3)


def test_without_a_deadline_it_is_never_too_late() -> None:
    """Off Lambda a job may take as long as it likes."""
    world = World()
    job = world.job(deadline_ms=None)
    world.now_ms += 10**12

    assert job.claim().held.document.attempt.deadline_ms is None


def test_while_waiting_for_another_attempt_time_can_run_out() -> None:
    """Too late is too late, also for an owner that may be dead."""
    world = World()
    world.job().begin()

    with pytest.raises(TooLateError):
        claims(world.job(), schedule=ending(world, LEAD_MS + 5_000))

    assert world.document.epoch == 1


# -- races -------------------------------------------------------------------------------------------------------------


def lose_race(world: World, verb: str) -> str:
    """Let another attempt claim the write just before this one's request; return the winner's nonce."""
    other: list[Job] = []

    def before(_: int) -> None:
        if network.sent[-1].verb == verb and not other:
            other.append(world.job())
            other[0].claim()

    network = Network(before=before)
    job = world.job(network)

    with pytest.raises(AnotherAttemptError):
        claims(
            job,
            sleep=beating(world, other),
        )
    return other[0].attempt.nonce


def test_of_two_first_claims_one_wins() -> None:
    """The other finds a live owner."""
    world = World()
    winner = lose_race(world, "create")
    assert world.document.owner == winner


def test_of_two_retries_one_wins() -> None:
    """The compare-and-swap that comes second is lost, and what it finds then is a live owner."""
    world = World()
    world.job().begin()
    world.settle()
    winner = lose_race(world, "replace")
    assert (world.document.epoch, world.document.owner) == (2, winner)


def test_a_document_that_vanishes_is_created_again() -> None:
    """Somebody has removed it between our failed creation and our reading."""
    world = World()
    world.job().begin()

    def before(_: int) -> None:
        if network.sent[-1].verb == "get" and len(network.sent) == 2:
            world.bucket.delete(f"checkpoints/{world.key}.json")

    network = Network(before=before)
    job = world.job(network)
    claim = dataclasses.replace(job.claimer).claim(World().job().state())

    assert claim.held.document.owner == job.attempt.nonce


def test_a_document_that_changes_without_end_is_given_up_on() -> None:
    """The rounds are bounded, and nothing was claimed."""
    world = World()
    world.job().begin()
    world.settle()

    def before(_: int) -> None:
        if network.sent[-1].verb == "replace":
            world.bucket.put(f"checkpoints/{world.key}.json", world.document.to_bytes())

    network = Network(before=before)
    job = world.job(network)

    with pytest.raises(TryAgainError, match="changes faster"):
        claims(job)

    assert world.document.epoch == 1
    assert len(network.sent) < 200


@pytest.mark.parametrize("fault", [Fault.REFUSE, Fault.LOSE_REPLY, Fault.LATE])
@pytest.mark.parametrize("first", [True, False])
def test_a_claim_that_gets_no_answer_ends_with_the_stores_error(fault: Fault, first: object) -> None:
    """Whether it landed is not known; if it has, the next attempt finds an owner that shows no sign of life."""
    world = World()
    if not first:
        world.job().begin()
        world.settle()
    network = Network(fault, 1 if first else 2)
    job = world.job(network)

    with pytest.raises(StoreError):
        claims(job)
    network.land()

    world.owner_dies()
    assert world.job().run()
    check(world)


def test_a_step_of_the_same_process_may_claim_again() -> None:
    """An attempt that was taken for dead and settled claims the next epoch, with files of another name."""
    world = World()
    job = world.job().begin()
    first = job.document.attempt.prefix
    world.owner_dies()
    world.settle(network=None)

    second = job.claim().held.document

    assert (second.epoch, second.owner) == (2, job.attempt.nonce)
    assert second.attempt.prefix != first


def test_a_marker_is_put_for_each_attempt() -> None:
    """Also where there is nothing to claim: the attempt removes its own."""
    world = World()
    world.job().run()

    world.job().claim()

    assert len(world.marked()) == 2
