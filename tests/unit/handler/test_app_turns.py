"""The turn of a job that an event describes: taken before the job, given back when its outcome is settled."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from handler.outcome.result import deliver, exit_status
from handler.process.child import Stop
from safewriter.coordination import Configuration
from safewriter.coordination.backends.memory import named
from safewriter.coordination.record import End, OpenWrite, Record
from safewriter.coordination.transitions import end, grant, open_write
from tests.unit.handler.world import EVENT, UNKNOWN, World

if TYPE_CHECKING:
    from pathlib import Path

LOCK = {"lock.name": "table", "name": "Mutation"}
INGESTION = Configuration(lock="table", job="Ingestion")
AFTER = {**LOCK, "predecessor": "Ingestion", "on.blocked": "raise"}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("SW_LOCKS", f"memory://{tmp_path.name}")
    return World(tmp_path)


def handled(world: World, **coordination: str) -> Any:
    return world.handle({**EVENT, "coordination": coordination})


def record(world: World) -> Record:
    stored = named(world.tmp.name).read("table")
    assert stored is not None
    return stored.record


def test_a_job_has_its_turn_while_it_runs_and_completes_it(world: World) -> None:
    """Its process is told of the turn; afterwards the lock is free, and its history names the run."""
    result = handled(world, **LOCK)

    assert result.state == "SUCCESS"
    assert world.command is not None
    told = json.loads(world.command.variables["SOAL_TURN"])
    assert (told["lock"], told["job"], told["token"]) == ("table", "Mutation", 1)
    (past,) = record(world).history
    assert (past.job, past.token, past.end, past.run) == ("Mutation", 1, End.COMPLETED, "t")
    assert record(world).holder is None


def test_a_second_delivery_takes_no_successor_s_turn(world: World) -> None:
    """Its job runs under the lock, whatever the order says, and the turn does not count."""
    named(world.tmp.name).write(end(grant(Record("table"), INGESTION, "n", "", 0), End.COMPLETED, 0), None)
    for _ in range(2):
        assert handled(world, **AFTER).state == "SUCCESS"

    assert [past.end for past in record(world).history] == [End.COMPLETED, End.COMPLETED, End.REPEATED]
    assert record(world).completions == 2


@pytest.mark.parametrize(
    ("locks", "problem"), [("redis://x", "is none of s3://bucket/prefix"), ("zookeeper://x", "is none of")]
)
def test_a_lock_service_that_cannot_be_opened_is_an_error_of_the_function(
    world: World, monkeypatch: pytest.MonkeyPatch, locks: str, problem: str
) -> None:
    """By the variable's name: no event may name the service."""
    monkeypatch.setenv("SW_LOCKS", locks)
    error = handled(world, **LOCK).error
    assert error is not None
    assert (error.field, problem in error.message, world.command) == ("SW_LOCKS", True, None)


def test_without_coordination_nothing_is_locked(world: World) -> None:
    """And the job is told of no turn."""
    assert world.handle().state == "SUCCESS"
    assert world.command is not None
    assert "SOAL_TURN" not in world.command.environment
    assert named(world.tmp.name).read("table") is None


@pytest.mark.parametrize(
    ("end", "reports"),
    [
        ({"exit_code": 1, "signal": None, "stop": None}, None),
        ({"exit_code": None, "signal": 9, "stop": Stop.KILLED}, None),
        (None, (UNKNOWN,)),
    ],
)
def test_a_job_that_does_not_succeed_completes_no_turn(world: World, end: Any, reports: Any) -> None:
    """Its successors wait until it has done its turn again."""
    world.end, world.reports = end or world.end, reports or world.reports

    assert handled(world, **LOCK).state != "SUCCESS"
    assert [past.end for past in record(world).history] == [End.FAILED]


def test_an_error_of_the_handler_gives_the_turn_back(world: World) -> None:
    """The lock need not wait for its lease."""
    world.fails = RuntimeError("broken")

    assert handled(world, **LOCK).state == "FAILED"
    assert record(world).holder is None


def test_a_job_that_the_order_blocks_is_not_started(world: World) -> None:
    """The event may be tried again later; the error says which job has to go first."""
    result = handled(world, **AFTER)

    assert (result.state, exit_status(result), world.command) == ("FAILED", 75, None)
    assert "Ingestion has not completed a turn" in result.state_details


def test_a_job_that_is_to_skip_its_turn_ends_well(world: World) -> None:
    """Lambda counts no failure, and the document says that nothing was done."""
    result = handled(world, **{**AFTER, "on.blocked": "skip"})

    assert (result.state, exit_status(result), result.error, world.command) == ("SKIPPED", 0, None, None)
    assert "the job was not started" in result.state_details
    assert deliver(result, None)["state"] == "SKIPPED"


def test_a_write_that_only_the_job_s_process_noted_stays_unsettled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process died between its claim and its first line; the next holder settles the write."""
    write = OpenWrite("s3://checkpoints", "sw-of-the-job", 1)
    supervise = world.supervise

    def note(*arguments: object, **more: object) -> Any:
        backend = named(world.tmp.name)
        stored = backend.read("table")
        assert stored is not None
        backend.write(open_write(stored.record, write), stored)
        return supervise(*arguments, **more)

    monkeypatch.setattr(world, "supervise", note)
    monkeypatch.setattr("safewriter.objects.s3.open_store", lambda _: world.store)
    result = handled(world, **LOCK)

    assert record(world).unsettled == (write,)
    assert [past.end for past in record(world).history] == [End.FAILED]
    assert any("does not count as completed" in warning for warning in result.warnings)


@pytest.mark.parametrize(
    ("coordination", "field"),
    [
        ({"name": "Mutation"}, "coordination.job.coordinator.lock.name"),
        ({**LOCK, "predecessor": "Mutation"}, "coordination.job.coordinator.predecessor"),
        ({**LOCK, "mode": "loose"}, "coordination.job.coordinator.mode"),
        ({}, "coordination.job.coordinator.lock.name"),
        ({**LOCK, "job.coordinator.name": "Other"}, "coordination.job.coordinator.name"),
        ({**LOCK, "lease.seconds": "24"}, "coordination.job.coordinator.lease.seconds"),
        ({**LOCK, "colour": "red"}, "coordination.job.coordinator.colour"),
        ({**LOCK, "job.coordinator.backend": "s3://mine"}, "coordination.job.coordinator.backend"),
    ],
)
def test_a_coordination_that_cannot_be_is_refused_by_its_key(
    world: World, coordination: dict[str, str], field: str
) -> None:
    """Nothing was locked, and no job started."""
    result = handled(world, **coordination)

    assert result.error is not None
    assert (result.error.field, exit_status(result), world.command) == (field, 2, None)
    assert named(world.tmp.name).read("table") is None


def test_a_job_runs_only_as_long_as_its_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor of the child asks it."""
    supervise, asked = world.supervise, []

    def until_it_is_over(*given: Any, may_run: Any, **more: Any) -> Any:
        asked.append(may_run())
        may_run.__self__._coordinator.held._sure_until_s = 0.0
        asked.append(may_run())
        return supervise(*given, **more)

    monkeypatch.setattr(world, "supervise", until_it_is_over)
    handled(world, **LOCK)
    assert asked == [True, False]
