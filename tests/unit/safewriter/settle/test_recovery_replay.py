"""Every way in which a settler can die, be told nothing or be late, and every moment at which the commit can land.

The loops end themselves: n = 1, 2, 3 … until a run ends in which no fault has fired.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from safewriter.errors import UnknownOutcomeError
from safewriter.record.document import OPEN, CommitPoint, Status
from safewriter.settle.recovery import Cause
from tests.unit.safewriter.failing import Fault, Killed, Network
from tests.unit.safewriter.invariants import check, nothing_is_left
from tests.unit.safewriter.world import Job, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LIMIT = 1000
"""No process here sends so many requests; a loop that gets there does not end by itself."""


@dataclass(frozen=True)
class Scenario:
    """A block that died, and what is to become of it."""

    commit_point: CommitPoint
    cause: Cause
    existing: bool

    def __str__(self) -> str:
        return f"{self.commit_point}-{self.cause.value}-{'append' if self.existing else 'create'}"

    def begun(self) -> tuple[World, Job]:
        world = World(self.commit_point, existing=self.existing)
        return world, world.job().begin("{}0.parquet")

    @property
    def undoes(self) -> bool:
        return self.commit_point is CommitPoint.SUCCESS or self.cause is Cause.EXCEPTION


SCENARIOS = [
    Scenario(commit_point, cause, existing)
    for existing in (True, False)
    for commit_point, cause in (
        (CommitPoint.WRITE, Cause.KILLED),
        (CommitPoint.WRITE, Cause.EXCEPTION),
        (CommitPoint.SUCCESS, Cause.KILLED),
    )
]
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)


class Moment:
    """Something that happens before the n-th request of all processes together; 0: never by itself."""

    def __init__(self, number: int, happen: Callable[[], object]) -> None:
        self._number = number
        self._happen = happen
        self._requests = 0
        self.happened = False

    def __call__(self, _: int) -> None:
        self._requests += 1
        if self._requests == self._number:
            self.now()

    def now(self) -> None:
        if not self.happened:
            self.happened = True
            self._happen()


def nobody(_: int) -> None:
    """Let nobody in between two requests."""


def dies(world: World, scenario: Scenario, network: Network) -> None:
    """Let a settler run until it ends or is killed; an error it may get, but not an untrue answer."""
    try:
        world.settle(scenario.cause, network=network)
    except (Killed, UnknownOutcomeError):
        assert network.fired
    check(world)


def recovers(world: World, scenario: Scenario, before: Callable[[int], None] = nobody) -> None:
    """Settle from the beginning: one run is enough, a second one changes nothing."""
    document = world.settle(scenario.cause, network=Network(before=before))
    assert document.status not in OPEN
    check(world)
    contents = world.bucket.contents(), world.lake.contents()
    assert world.settle(scenario.cause).status is document.status
    assert (world.bucket.contents(), world.lake.contents()) == contents


def retries(world: World, before: Callable[[int], None] = nobody) -> None:
    """Bring the batch in exactly once, within two attempts."""
    world.owner_dies()
    for _ in range(2):
        if world.job(Network(before=before)).run():
            break
        check(world)
    assert world.document.status is Status.COMMITTED
    check(world)


def is_cleaned(world: World) -> None:
    """After the grace one look removes everything that is left."""
    world.grace_passes()
    world.recovery().clean(world.key)
    nothing_is_left(world)
    check(world)


def ends_well(world: World, scenario: Scenario, before: Callable[[int], None] = nobody) -> None:
    recovers(world, scenario, before)
    retries(world, before)


def faults(*kinds: Fault, and_all_after: bool = False, before: Callable[[int], None] = nobody) -> Iterator[Network]:
    """Yield a network for each write that can be hit, and one that is hit no more, for each kind of fault."""
    for kind in kinds:
        for number in range(1, _LIMIT):
            network = Network(kind, number, and_all_after=and_all_after, before=before)
            yield network
            if not network.fired:
                assert number > 2
                break
        else:
            raise AssertionError


# -- the settler is hit ------------------------------------------------------------------------------------------------


@every_scenario
@pytest.mark.parametrize("landed", [True, False])
def test_a_settler_that_is_killed_at_any_write_leaves_nothing_untrue(scenario: Scenario, landed: object) -> None:
    """Before or after each of its writes: the next settler, the retry and the clean-up end as if nothing had been."""
    for network in faults(Fault.KILL_BEFORE, Fault.KILL_AFTER):
        world, job = scenario.begun()
        if landed:
            job.land()
        dies(world, scenario, network)
        recovers(world, scenario)
        expected = Status.COMMITTED if landed and not scenario.undoes else Status.ROLLED_BACK
        assert world.document.status is expected
        retries(world)
        is_cleaned(world)


@every_scenario
@pytest.mark.parametrize("landed", [True, False])
def test_a_settler_that_gets_errors_at_any_write_leaves_nothing_untrue(scenario: Scenario, landed: object) -> None:
    """Once or for good, applied or not: an error is no verdict, and the next settler finds the truth."""
    for for_good in (False, True):
        for network in faults(Fault.REFUSE, Fault.LOSE_REPLY, and_all_after=for_good):
            world, job = scenario.begun()
            if landed:
                job.land()
            dies(world, scenario, network)
            ends_well(world, scenario)
            is_cleaned(world)


@every_scenario
@pytest.mark.parametrize("landed", [True, False])
def test_a_settler_whose_write_is_late_changes_nothing_when_it_lands(scenario: Scenario, landed: object) -> None:
    """Each of its writes, landing before each request of the next settler and of the retry, or after them all."""
    for write in range(1, _LIMIT):
        fired = False
        for number in range(1, _LIMIT):
            world, job = scenario.begun()
            if landed:
                job.land()
            network = Network(Fault.KILL_LATE, write)
            moment = Moment(number, network.land)
            dies(world, scenario, network)
            ends_well(world, scenario, moment)
            fired, landed_in_time = network.fired, moment.happened
            moment.now()
            check(world)
            if not landed_in_time or not fired:
                break
        if not fired:
            break
    assert 2 < write < _LIMIT - 1


@every_scenario
@pytest.mark.parametrize("landed", [True, False])
def test_a_settler_that_gives_up_on_a_late_write_is_not_surprised_by_it(scenario: Scenario, landed: object) -> None:
    """It goes on, or ends, with an error; the write lands after everything."""
    for network in faults(Fault.LATE):
        world, job = scenario.begun()
        if landed:
            job.land()
        dies(world, scenario, network)
        ends_well(world, scenario)
        network.land()
        check(world)


@pytest.mark.parametrize("existing", [True, False])
@pytest.mark.parametrize("landed", [True, False])
def test_a_supervisor_that_would_keep_what_a_dying_guard_undoes_says_the_truth(
    existing: object, landed: object
) -> None:
    """The guard settles an exception and dies over it, or its write is late; whoever comes next only sees a kill."""
    guard = Scenario(CommitPoint.WRITE, Cause.EXCEPTION, existing=bool(existing))
    supervisor = Scenario(CommitPoint.WRITE, Cause.KILLED, existing=bool(existing))
    verdicts = set()
    for network in faults(Fault.KILL_BEFORE, Fault.KILL_AFTER, Fault.KILL_LATE):
        world, job = guard.begun()
        if landed:
            job.land()
        dies(world, guard, network)
        recovers(world, supervisor)
        verdicts.add(world.document.status)
        network.land()
        check(world)
        retries(world)
    assert verdicts == ({Status.COMMITTED, Status.ROLLED_BACK} if landed else {Status.ROLLED_BACK})


# -- the commit is in the air ------------------------------------------------------------------------------------------


def in_the_air(scenario: Scenario, job: Job) -> Callable[[], object]:
    """Return the landing of a commit whose client knows nothing of its death, by the rules of Delta and gate."""
    job.prepare()
    if scenario.existing:
        return job.rebase
    return lambda: job.note() and job.rebase()


@every_scenario
@pytest.mark.parametrize("taken", [True, False])
def test_a_commit_that_lands_at_any_moment_makes_no_verdict_untrue(scenario: Scenario, taken: object) -> None:
    """Before each request of settler and retry, or after them all; its own slot being free or taken."""
    for number in range(1, _LIMIT):
        world, job = scenario.begun()
        land = in_the_air(scenario, job)
        if taken and scenario.existing:
            world.append_foreign()
        moment = Moment(number, land)
        ends_well(world, scenario, moment)
        landed_in_time = moment.happened
        moment.now()
        check(world)
        is_cleaned(world)
        if not landed_in_time:
            break
    assert number > 20


@every_scenario
def test_a_commit_that_lands_at_any_moment_while_the_settler_dies_at_any_write(scenario: Scenario) -> None:
    """Both together: the settler is killed, and the commit lands before, between or after."""
    for kind in (Fault.KILL_BEFORE, Fault.KILL_AFTER):
        for write in range(1, _LIMIT):
            fired = False
            for number in range(1, _LIMIT):
                world, job = scenario.begun()
                moment = Moment(number, in_the_air(scenario, job))
                network = Network(kind, write, before=moment)
                dies(world, scenario, network)
                recovers(world, scenario, moment)
                landed_in_time = moment.happened
                moment.now()
                check(world)
                # The moment of the landing decides how many writes there are, so one run without a kill says little.
                fired = fired or network.fired
                if not landed_in_time:
                    retries(world)
                    break
            if not fired:
                break
        assert 2 < write < _LIMIT - 1


@pytest.mark.parametrize("commit_point", CommitPoint)
def test_note_and_commit_of_a_creation_land_at_any_two_moments(commit_point: CommitPoint) -> None:
    """The note decides: closed before it is there, the commit is never sent; there before, version 0 is fenced."""
    scenario = Scenario(commit_point, Cause.KILLED, existing=False)
    fates = set()
    in_time = False
    for first in range(1, _LIMIT):
        for second in range(first, _LIMIT):
            world, job = scenario.begun()
            job.prepare()
            noted: list[bool] = []
            note = Moment(first, lambda job=job, noted=noted: noted.append(job.note()))  # type: ignore[misc]
            commit = Moment(second, lambda job=job, noted=noted: noted == [True] and job.rebase())  # type: ignore[misc]

            def both(number: int, note: Moment = note, commit: Moment = commit) -> None:
                note(number)
                commit(number)

            recovers(world, scenario, both)
            in_time = commit.happened
            note.now()
            commit.now()
            check(world)
            fates.add((noted[0], world.log.head, world.document.status))
            retries(world)
            if not in_time:
                break
        if not in_time and second == first:
            break
    kept = Status.COMMITTED if commit_point is CommitPoint.WRITE else Status.ROLLED_BACK
    assert {(False, -1, Status.ROLLED_BACK), (True, 0, Status.ROLLED_BACK)} <= fates
    assert kept in {status for noted, _, status in fates if noted}


# -- the retry settles, and is hit itself ------------------------------------------------------------------------------


@every_scenario
@pytest.mark.parametrize("landed", [True, False])
def test_a_retry_that_is_killed_at_any_write_leaves_nothing_untrue(scenario: Scenario, landed: object) -> None:
    """From its marker to its commit and its verdict: the next retry brings the batch in once."""
    for network in faults(Fault.KILL_BEFORE, Fault.KILL_AFTER):
        world, job = scenario.begun()
        if landed:
            job.land()
        world.owner_dies()
        try:
            world.job(network).run()
        except Killed:
            assert network.fired
        check(world)
        retries(world)
        is_cleaned(world)


@every_scenario
def test_a_retry_whose_write_is_late_is_settled_like_any_other(scenario: Scenario) -> None:
    """Its claim, its commit or its verdict lands when the next attempt is long done."""
    for network in faults(Fault.KILL_LATE):
        world, _ = scenario.begun()
        world.owner_dies()
        try:
            world.job(network).run()
        except Killed:
            assert network.fired
        retries(world)
        network.land()
        check(world)


@every_scenario
def test_a_first_claim_that_is_late_is_found_by_its_marker(scenario: Scenario) -> None:
    """An attempt whose document lands after its death is open, has a marker, and is settled like any other."""
    for write, name in ((1, "open"), (2, "checkpoints")):
        world = World(scenario.commit_point, existing=scenario.existing)
        network = Network(Fault.KILL_LATE, write)
        with pytest.raises(Killed):
            world.job(network).claim()
        assert network.sent[-1].key.startswith(name)

        network.land()

        assert world.checkpoints.read(world.key) is None or len(world.marked()) == 1
        retries(world)


def test_the_loops_reach_every_kind_of_write() -> None:
    """The harness itself: fence, revert, every state, audit log, data file, upload and marker were hit."""
    hit = set()
    for scenario, landed in itertools.product(SCENARIOS, (True, False)):
        for network in faults(Fault.KILL_BEFORE):
            world, job = scenario.begun()
            if landed:
                job.land()
            world.grace_passes()
            dies(world, scenario, network)
            if network.fired:
                last = network.sent[-1]
                hit.add((last.verb, last.key.split("/")[0].split("-")[0]))

    assert hit == {
        ("create", "_delta_log"),
        ("create", "notes"),
        ("replace", "checkpoints"),
        ("put", "audit"),
        ("delete", "sw"),
        ("abort", "sw"),
        ("delete", "open"),
        ("delete", "leases"),
    }
