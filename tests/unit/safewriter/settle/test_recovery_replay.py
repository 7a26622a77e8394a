"""Every way in which a settler can die, get no answer or be late, and every moment at which the commit can land.

The loops end themselves: n = 1, 2, 3 … until a run ends in which no fault has fired.
"""

from __future__ import annotations

import itertools

import pytest

from safewriter.record.document import CommitPoint, Status
from safewriter.settle.recovery import Cause
from tests.unit.safewriter.delta_log import File, append_actions
from tests.unit.safewriter.failing import Fault, Killed, Network
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.job import Job
from tests.unit.safewriter.settle.replay import (
    LIMIT,
    SCENARIOS,
    Moment,
    Scenario,
    dies,
    ends_well,
    every_scenario,
    faults,
    is_cleaned,
    recovers,
    retries,
)
from tests.unit.safewriter.settle.traces import operations
from tests.unit.safewriter.world import World

# -- the settler is hit ------------------------------------------------------------------------------------------------


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@every_scenario
@pytest.mark.parametrize("landed", [True, False])
def test_a_settler_whose_write_is_late_changes_nothing_when_it_lands(scenario: Scenario, landed: object) -> None:
    """Each of its writes lands before each request of the next settler and of the retry, or after them all."""
    for write in range(1, LIMIT):
        fired = False
        for number in range(1, LIMIT):
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
    assert 2 < write < LIMIT - 1


@every_scenario
@pytest.mark.parametrize("landed", [True, False])
def test_a_settler_that_gives_up_on_a_late_write_is_not_surprised_by_it(scenario: Scenario, landed: object) -> None:
    """It continues, or ends with an error; the write lands after everything."""
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
    """The guard settles an exception and dies over it, or its write is late; the next settler only sees a kill."""
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


# -- the retry settles, and is hit itself ------------------------------------------------------------------------------


@pytest.mark.slow
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
    """Its claim, commit or verdict lands long after the next attempt has ended."""
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
    """The harness itself: faults hit fence, revert, every state, audit log, data file, upload and marker."""
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
    }


def test_a_killed_settler_leaves_what_it_has_done() -> None:
    """The harness itself: a kill goes through every handler of the code under test."""
    world = World()
    world.job().begin()

    with pytest.raises(Killed):
        world.settle(network=Network(Fault.KILL_AFTER, 1))

    assert world.document.status is Status.IN_PROGRESS
    assert operations(world)[-1] == "SAFEWRITER FENCE"


def test_two_attempts_that_committed_are_both_seen_by_the_checks() -> None:
    """The harness itself: a doubled batch does not go unnoticed."""
    world = World()
    world.job().begin().land()
    second = Job(world, "f" * 16, Network())
    world.jobs.append(second)
    second.files = (File("double"),)
    world.log.commit(append_actions((File("double"),)))
    world.lake.put("double", b"")

    with pytest.raises(AssertionError):
        check(world)
