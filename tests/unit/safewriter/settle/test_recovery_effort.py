"""What recovery avoids: reading anything twice, writing without need, cleaning more than it was asked to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.identity import Attempt
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import Checkpoint, CommitPoint, Status
from safewriter.record.marker import Marker
from safewriter.settle.recovery import Cause, Evidence, Recovery
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from safewriter.objects import ObjectStore
    from tests.unit.safewriter.job import Job


def touched(world: World) -> None:
    """Write the document again, so that it has another ETag."""
    stored = world.checkpoints.read(world.key)
    assert stored is not None
    assert world.checkpoints.replace(stored, stored.document)


def statuses(network: Network) -> list[str]:
    """Return the statuses of all written documents."""
    return [sent.verb for sent in network.sent if sent.key.startswith("checkpoints/")]


def left_by(job: Job) -> bool:
    return job.leftover in job.world.lake.contents()


def settled_and_clean(world: World) -> Job:
    """An attempt that died and was cleaned up after."""
    job = world.job().begin()
    world.settle(evidence=Evidence(requests_ended=True))
    assert world.document.attempt.cleaned
    return job


def test_secrets_of_a_catalog_are_handed_to_who_opens_tables() -> None:
    """No document holds them; without any they come from the environment."""
    world = World()

    assert world.recovery(secrets={"uri": "jdbc:x"}).settling.secrets == {"uri": "jdbc:x"}
    assert world.recovery().settling.secrets == {}


def test_a_table_is_opened_once_for_all_rounds_and_the_clean_up() -> None:
    """A lost compare-and-swap begins a new round, which reuses the log that was read."""
    world = World()
    world.job().begin()
    opened: list[str] = []

    def table_store(uri: str) -> ObjectStore:
        opened.append(uri)
        if len(opened) == 1:
            touched(world)
        return world.lake

    stored = Recovery(world.checkpoints, table_store, clock=world.clock).settle(world.key, Cause.KILLED)

    assert stored is not None
    assert stored.document.status is Status.ROLLED_BACK
    assert len(opened) == 1


def test_a_verdict_is_dated_and_a_step_on_the_way_is_not() -> None:
    """The missing date of rolling_back shows a reader that nothing is decided."""
    world = World(CommitPoint.SUCCESS)
    world.job().begin().land()

    world.settle()

    key = f"checkpoints/{world.key}.json"
    written = [Checkpoint.from_bytes(body) for name, body in world.bucket.written if name == key]
    rolling, done = [one for one in written if one.status in (Status.ROLLING_BACK, Status.ROLLED_BACK)][:2]
    assert (rolling.status, rolling.attempt.settled_ms, rolling.attempt.settled_by) == (Status.ROLLING_BACK, None, None)
    assert (done.attempt.settled_ms, done.attempt.settled_by) == (world.now_ms, "killed")


def test_an_undo_reads_the_document_once_before_its_verdict() -> None:
    """The settler keeps the document that its compare-and-swap has written."""
    world = World(CommitPoint.SUCCESS)
    world.job().begin().land()
    network = Network()

    world.settle(Cause.KILLED, Evidence(cleans_later=True), network)

    assert statuses(network) == ["get", "replace", "replace", "get"]


def test_who_cleans_later_is_left_everything() -> None:
    """The program continues as soon as the verdict is written."""
    world = World()
    job = world.job().begin()

    world.settle(evidence=Evidence(cleans_later=True))

    assert left_by(job)
    assert not world.document.attempt.cleaned


def test_an_attempt_that_left_nothing_is_not_looked_for() -> None:
    """Its owner knows that it has left nothing, so the lake gets no request."""
    world = World()
    job = world.job().begin().land()
    assert job.success()
    network = Network()

    assert world.recovery(network).clean(world.key, ended_nonce=job.attempt.nonce, left_nothing=True) == 0

    assert left_by(job)
    assert world.document.attempt.cleaned
    assert world.document.attempt.files_removed == 0
    assert world.marked() == ()
    assert not any(sent.verb == "list" for sent in network.sent)


def test_beside_an_attempt_that_left_nothing_the_others_are_looked_for() -> None:
    """The owner says so only of its own attempt: an earlier attempt that died has left files."""
    world = World()
    first = world.job().begin()
    world.settle(evidence=Evidence(cleans_later=True))
    second = world.job().begin().land()
    assert second.success()

    assert world.recovery().clean(world.key, ended_nonce=second.attempt.nonce, left_nothing=True) == 1 + len(
        first.files
    )

    assert not left_by(first)


def test_a_clean_up_that_finds_nothing_and_ends_nothing_writes_nothing() -> None:
    """While the grace runs, each settler would otherwise change the document."""
    world = World()
    world.job().begin()
    world.settle()
    network = Network()

    assert world.recovery(network, audit_log=False).clean(world.key) == 0

    assert network.mutations == 0


def test_who_comes_back_leaves_other_earlier_attempts_alone() -> None:
    """While a later attempt writes, each attempt cleans up only after itself."""
    world = World()
    first, second = settled_and_clean(world), settled_and_clean(world)
    world.job().begin()
    for one in (first, second):
        world.lake.put(one.leftover, b"late")

    assert world.recovery().clean(world.key, ended_nonce=first.attempt.nonce) == 1

    assert not left_by(first)
    assert left_by(second)


def test_what_comes_late_goes_although_an_earlier_attempt_is_not_clean_yet() -> None:
    """Every attempt before the last of those to clean is looked for, too."""
    world = World()
    world.job().begin()
    world.settle()
    second = settled_and_clean(world)
    world.lake.put(second.leftover, b"late")
    third = world.job().begin().land()
    assert third.success()

    world.recovery().clean(world.key, ended_nonce=third.attempt.nonce)

    assert not left_by(second)


def test_a_document_that_changes_for_ever_ends_the_clean_up() -> None:
    """After a bounded number of rounds, with the number of files removed until then."""
    world = World()
    job = world.job().begin()
    world.settle(evidence=Evidence(cleans_later=True))
    world.grace_passes()

    class Contended(Checkpoints):
        def replace(self, *_: object) -> None:
            return None

    recovery = Recovery(Contended(world.bucket), lambda _: world.lake, clock=world.clock)

    assert recovery.clean(world.key) == 1 + len(job.files)


@pytest.mark.parametrize("cause", [Cause.KILLED, Cause.EXCEPTION])
def test_recovery_audits_and_goes_on_unless_it_is_told_otherwise(cause: Cause) -> None:
    """A settler without a budget has time; a rollback leaves its trail."""
    world = World()
    world.job().begin()

    world.settle(cause)

    assert any(key.startswith("audit/") for key in world.bucket.contents())


def test_an_attempt_that_never_claimed_says_nothing_of_the_log() -> None:
    """It has written nothing, and does not know when the table began: only versions since the other claims are read."""
    world, network = World(), Network()
    unclaimed = Marker.of(world.write, Attempt.draw(), world.commit_point, started_ms=1, deadline_ms=5)
    world.checkpoints.create(unclaimed.document(Status.ROLLED_BACK, "never claimed", world.now_ms, "sweeper"))
    world.sleep(1)
    job = world.job().begin().land()
    assert job.success()

    world.recovery(network).clean(world.key, ended_nonce=job.attempt.nonce)

    assert world.document.attempt.cleaned
    assert [sent.key for sent in network.sent if sent.verb == "get" and "_delta_log" in sent.key] == [key_of(2)]


def requests_to_verdict(world: World, cause: Cause) -> list[str]:
    """Settle as the supervisor of a killed job does; return its requests up to the one that writes the verdict."""
    network = Network()
    document = world.settle(cause, network=network)
    assert document.status in {Status.COMMITTED, Status.ROLLED_BACK}
    requests = [f"{sent.verb} {sent.key.rpartition('/')[0]}" for sent in network.sent]
    writes = [number for number, request in enumerate(requests, 1) if request == "replace checkpoints"]
    return requests[
        : writes[1 if document.attempt.commit_version is not None and "undone" in str(document.reason) else 0]
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("commit_point", "landed", "status", "bound"),
    [
        (CommitPoint.WRITE, False, Status.ROLLED_BACK, 6),
        (CommitPoint.WRITE, True, Status.COMMITTED, 4),
        (CommitPoint.SUCCESS, True, Status.ROLLED_BACK, 7),
    ],
)
def test_settling_takes_few_requests_and_no_more_on_a_table_with_a_long_history(
    commit_point: CommitPoint, status: Status, bound: int, *, landed: bool
) -> None:
    """Requests run one after the other, so their number is the time that a verdict takes."""

    def requests(commits: int) -> list[str]:
        world = World(commit_point)
        for _ in range(commits):
            world.append_foreign()
        job = world.job().begin()
        if landed:
            job.land()
        world.log.tell()
        found = requests_to_verdict(world, Cause.KILLED)
        assert world.document.status is status
        return found

    short = requests(10)
    assert len(short) <= bound, short
    assert requests(1_000) == short
