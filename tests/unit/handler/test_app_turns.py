"""The turn of an event's job: taken before the job, and given back when its outcome is settled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from handler.outcome.delivery import JobFailed, deliver
from handler.outcome.result import exit_status
from handler.process.child import Stop
from handler.sandbox import removal
from safewriter.coordination import Configuration
from safewriter.coordination.backends.memory import by_name
from safewriter.coordination.record import RUNS_MAX, End, OpenWrite, Record
from safewriter.coordination.transitions import end, grant, has_completed, join, open_write
from safewriter.deadline import Deadline, epoch_ms
from tests.unit.handler.world import EVENT, UNKNOWN, World

LOCK = {"lock.name": "table", "name": "Mutation"}
INGESTION = Configuration(lock="table", job="Ingestion")
FREE = {"script": EVENT["script"]}
AFTER = {**FREE, "predecessor": "Ingestion", "on.blocked": "raise"}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("SW_LOCKS", f"memory://{tmp_path.name}")
    return World(tmp_path)


def handled(world: World, declared: dict[str, Any] = FREE, coordination: dict[str, str] | None = LOCK) -> Any:
    turns = json.dumps({"table": {"Mutation": declared, "Ingestion": {"script": "s3://scripts/ingestion.py"}}})
    event = EVENT if coordination is None else {**EVENT, "coordination": coordination}
    return world.handle(event, SOAL_TURNS=turns)


def record(world: World) -> Record:
    stored = by_name(world.tmp.name).read("table")
    assert stored is not None
    return stored.record


def test_a_job_has_its_turn_while_it_runs_and_completes_it(world: World) -> None:
    """Its process gets the turn; afterwards the lock is free, and its history names the run."""
    result = handled(world)

    assert result.state == "SUCCESS"
    assert world.command is not None
    told = json.loads(world.command.variables["SOAL_TURN"])
    assert (told["lock"], told["job"], told["token"]) == ("table", "Mutation", 1)
    (past,) = record(world).history
    assert (past.job, past.token, past.end, past.run) == ("Mutation", 1, End.COMPLETED, "t")
    assert record(world).holder is None


def test_a_second_delivery_takes_no_successor_s_turn(world: World) -> None:
    """Its job runs under the lock, whatever the order is, and the turn does not count."""
    by_name(world.tmp.name).write(end(grant(Record("table"), INGESTION, "n", "", 0), End.COMPLETED, 0), None)
    for _ in range(2):
        assert handled(world, AFTER).state == "SUCCESS"

    assert [past.end for past in record(world).history] == [End.COMPLETED, End.COMPLETED, End.REPEATED]
    assert record(world).completions == 2


def test_a_completed_turn_is_repeated_only_by_the_run_and_the_script_that_had_it(world: World) -> None:
    """Nothing else may run outside the order, even if it accepts a changed script or the record is gone."""
    by_name(world.tmp.name).write(end(grant(Record("table"), INGESTION, "n", "", 0), End.COMPLETED, 0), None)
    turns = json.dumps({"table": {"Mutation": AFTER, "Ingestion": {"script": "s3://scripts/ingestion.py"}}})
    assert world.handle({**EVENT, "coordination": LOCK}, SOAL_TURNS=turns).state == "SUCCESS"

    world.code["job.py"] = b"another"
    event = {**EVENT, "coordination": LOCK, "acceptChangedScript": True}
    for problem in ("its script has changed", "its script has changed", "its record is gone"):
        if problem == "its record is gone":
            world.store.delete_all([listed.key for listed in world.store.list("runs/")])
        world.may_run = False
        error = world.handle(event, SOAL_TURNS=turns, SOAL_ACCEPT_CHANGED_SCRIPT="on").error
        assert error is not None
        assert (error.field, problem in error.message, world.may_run) == ("clientToken", True, False)


def test_an_event_that_accepts_a_changed_script_may_come_again(world: World) -> None:
    """The script that completed its turn repeats it; without the permission the same script may not."""
    turns = json.dumps({"table": {"Mutation": {"script": "s3://scripts/job.py"}}})
    world.end = {"exit_code": 1, "signal": None, "stop": None}
    assert world.handle({**EVENT, "coordination": LOCK}, SOAL_TURNS=turns).state == "FAILED"

    world.end, world.code["job.py"] = {"exit_code": 0, "signal": None, "stop": None}, b"mended"
    event = {**EVENT, "coordination": LOCK, "acceptChangedScript": True}
    for _ in range(2):
        assert world.handle(event, SOAL_TURNS=turns).state == "SUCCESS"

    assert [past.end for past in record(world).history] == [End.FAILED, End.COMPLETED, End.REPEATED]
    error = world.handle({**EVENT, "coordination": LOCK}, SOAL_TURNS=turns).error
    assert error is not None
    assert "more than one script" in error.message


@pytest.mark.parametrize(
    ("locks", "problem"), [("redis://x", "is none of s3://bucket/prefix"), ("zookeeper://x", "is none of")]
)
def test_a_lock_service_that_cannot_be_opened_is_an_error_of_the_function(
    world: World, monkeypatch: pytest.MonkeyPatch, locks: str, problem: str
) -> None:
    """The error names the variable: no event may name the service."""
    monkeypatch.setenv("SW_LOCKS", locks)
    error = handled(world).error
    assert error is not None
    assert (error.field, problem in error.message, world.command) == ("SW_LOCKS", True, None)


def test_without_coordination_nothing_is_locked(world: World) -> None:
    """The job gets no turn."""
    assert world.handle().state == "SUCCESS"
    assert world.command is not None
    assert "SOAL_TURN" not in world.command.environment
    assert by_name(world.tmp.name).read("table") is None


@pytest.mark.parametrize(
    ("end", "reports"),
    [
        ({"exit_code": 1, "signal": None, "stop": None}, None),
        ({"exit_code": None, "signal": 9, "stop": Stop.KILLED}, None),
        ({"exit_code": 0, "signal": None, "stop": Stop.TERMINATED, "own_exit": None}, None),
        (None, (UNKNOWN,)),
    ],
)
def test_a_job_that_does_not_succeed_completes_no_turn(world: World, end: Any, reports: Any) -> None:
    """Its successors wait until it has completed its turn."""
    world.end, world.reports = end or world.end, reports or world.reports

    assert handled(world).state != "SUCCESS"
    assert [past.end for past in record(world).history] == [End.FAILED]


@pytest.mark.parametrize(("exit_code", "state"), [(0, "SUCCESS"), (1, "FAILED")])
def test_a_job_that_leaves_more_than_can_be_removed_is_on_record_and_its_turn_over(
    world: World, monkeypatch: pytest.MonkeyPatch, exit_code: int, state: str
) -> None:
    """The result names the leftovers, and the next job removes them."""
    now_ms = [epoch_ms()]
    world.deadline = Deadline(now_ms[0] + 900_000, now_ms[0], lambda: now_ms[0])
    world.end, world.may_leave = {"exit_code": exit_code, "signal": None, "stop": None}, True
    gone, supervise = removal._try_removal, world.supervise

    def slowly_gone(*arguments: Any) -> bool:
        now_ms[0] += 1000
        return gone(*arguments)

    def leaving(*arguments: object) -> Any:
        assert world.command is not None
        work = Path(world.command.variables["SOAL_GO"]).parent / "work"
        for number in range(1000):
            (work / str(number)).mkdir()
        return supervise(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(removal, "_try_removal", slowly_gone)
        patched.setattr(world, "supervise", lambda *arguments, **_: leaving(*arguments))
        result = handled(world)

    assert (result.state, world.stored("runs/")[0]["state"]) == (state, state)
    assert [past.end for past in record(world).history] == [End.COMPLETED if exit_code == 0 else End.FAILED]
    (left,) = world.tmp.iterdir()
    assert [f"{left} could not be removed in time" in warning for warning in result.warnings] == [True]

    world.deadline, world.may_leave = None, False
    assert handled(world).warnings == ()
    assert not left.exists()


def test_an_error_of_the_handler_gives_the_turn_back(world: World) -> None:
    """The lock need not wait for its lease."""
    world.fails = RuntimeError("broken")

    assert handled(world).state == "FAILED"
    assert record(world).holder is None


def test_a_job_that_the_order_blocks_is_not_started(world: World) -> None:
    """The event may be retried later; the error names the job that must run first."""
    result = handled(world, AFTER)

    assert (result.state, exit_status(result), world.command) == ("FAILED", 75, None)
    assert "Mutation waits for the next turn that Ingestion completes" in result.state_details


def test_a_job_that_is_to_skip_its_turn_ends_well(world: World) -> None:
    """Lambda counts no failure, and the document says that nothing was done."""
    result = handled(world, {**AFTER, "on.blocked": "skip"})

    assert (result.state, exit_status(result), result.error, world.command) == ("SKIPPED", 0, None, None)
    assert "the job was not started" in result.state_details
    assert deliver(result, None)["state"] == "SKIPPED"


@pytest.mark.parametrize(
    ("code", "event", "state", "expected"),
    [
        (0, "t", "SUCCESS", ("SKIPPED", 0)),
        (1, "t", "FAILED", ("FAILED", 75)),
        (1, "other", "FAILED", ("SKIPPED", 0)),
    ],
    ids=["succeeded", "failed", "another run"],
)
def test_only_a_run_that_waits_for_no_further_attempt_skips_its_turn(
    world: World, code: int, event: str, state: str, expected: tuple[str, int]
) -> None:
    """Between two attempts of a run another one took the turn: a skip would tell its callers that the run is done."""
    world.end["exit_code"] = code
    assert world.handle().state == state
    turns = json.dumps(
        {"table": {"Mutation": {**AFTER, "on.blocked": "skip"}, "Ingestion": {"script": "s3://scripts/ingestion.py"}}}
    )
    world.command = None

    result = world.handle({**EVENT, "coordination": LOCK, "clientToken": event}, SOAL_TURNS=turns)
    assert (result.state, exit_status(result), world.command) == (*expected, None)
    assert ("the run is not skipped: its attempt 1" in result.state_details) == (result.state == "FAILED")


@pytest.mark.parametrize("state", ["RUNNING", "INCOMPLETE", "TIMED_OUT", "CANCELLED", "UNKNOWN"])
def test_a_run_whose_last_attempt_has_not_succeeded_is_not_skipped(world: World, state: str) -> None:
    """The machine, the queue, Lambda, `--until-done` and the redrive try it again: the answer says that they may."""
    world.end["exit_code"] = 1
    world.handle()
    (stored,) = [world.store.get(listed.key) for listed in world.store.list("runs/")]
    assert stored is not None
    world.store.put(stored.key, json.dumps({**json.loads(stored.body), "state": state}).encode())

    result = handled(world, {**AFTER, "on.blocked": "skip"})
    assert (result.state, result.error is not None and result.error.retryable) == ("FAILED", True)
    with pytest.raises(JobFailed):
        deliver(result, None)


def test_a_run_whose_record_cannot_be_read_is_not_skipped(world: World) -> None:
    """Nothing tells whether an attempt of it has begun."""
    world.end["exit_code"] = 1
    world.handle()
    (key,) = [listed.key for listed in world.store.list("runs/")]
    world.store.put(key, b"damaged")

    result = handled(world, {**AFTER, "on.blocked": "skip"})
    assert (result.state, exit_status(result)) == ("FAILED", 75)


def test_a_write_that_only_the_job_s_process_noted_stays_unsettled(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process died between its claim and its first line; the next holder settles the write."""
    write = OpenWrite("s3://checkpoints", "sw-of-the-job", 1)
    supervise = world.supervise

    def note(*arguments: object, **more: object) -> Any:
        backend = by_name(world.tmp.name)
        stored = backend.read("table")
        assert stored is not None
        backend.write(open_write(stored.record, write), stored)
        return supervise(*arguments, **more)

    monkeypatch.setattr(world, "supervise", note)
    monkeypatch.setattr("safewriter.objects.s3.open_store", lambda _: world.store)
    result = handled(world)

    assert record(world).unsettled == (write,)
    assert [past.end for past in record(world).history] == [End.FAILED]
    assert any("does not count as completed" in warning for warning in result.warnings)


def test_a_script_that_does_nothing_completes_no_turn_of_another_script(world: World) -> None:
    """A job is bound to its script: an event cannot run another one under its name."""
    turns = json.dumps({"table": {"Ingestion": {"script": "s3://scripts/ingestion.py"}}})
    event = {"script": "s3://scripts/nothing.py", "coordination": {"lock.name": "table", "name": "Ingestion"}}
    error = world.handle(event, SOAL_TURNS=turns).error

    assert error is not None
    assert (error.field, world.command) == ("coordination", None)
    assert by_name(world.tmp.name).read("table") is None


def test_an_event_acts_for_no_other_job_and_changes_no_order(world: World) -> None:
    """Another job's name, another lock, no predecessor, an invented one, a lease of a day: none reaches the lock."""
    after = {"script": EVENT["script"], "predecessor": "Ingestion"}
    for foreign, key in (
        ({**LOCK, "name": "Ingestion"}, "name"),
        ({**LOCK, "lock.name": "other"}, "lock.name"),
        ({**LOCK, "predecessor": "TTL"}, "predecessor"),
        ({**LOCK, "first.run": "run"}, "first.run"),
        ({**LOCK, "lease.seconds": "86400"}, "lease.seconds"),
    ):
        error = handled(world, after, foreign).error
        assert error is not None
        assert (error.field, world.command) == (f"coordination.job.coordinator.{key}", None)
        assert "SOAL_TURNS" in error.message
    assert by_name(world.tmp.name).read("table") is None


@pytest.mark.parametrize("coordination", [None, {}, LOCK])
def test_a_declared_script_waits_for_its_turn_whatever_the_event_leaves_out(world: World, coordination: Any) -> None:
    """An event without a turn, or without a predecessor, runs no sooner."""
    result = handled(world, AFTER, coordination)

    assert "Mutation waits for the next turn that Ingestion completes" in result.state_details
    assert world.command is None


def test_an_event_of_another_service_takes_the_script_s_turn(world: World) -> None:
    """It has no field for it, and its script is the declared job."""
    turns = json.dumps({"table": {"Mutation": FREE}})
    result = world.handle({"detail": "anything"}, SOAL_TURNS=turns, SOAL_ENTRY_POINT="s3://scripts/job.py")

    assert result.state == "SUCCESS"
    assert [past.job for past in record(world).history] == ["Mutation"]


def test_a_ring_that_nobody_can_start_is_an_error_of_the_function(world: World) -> None:
    """The error names the function's variable, since an event cannot set the order."""
    after = Configuration(lock="table", job="Ingestion", predecessor="Mutation")
    by_name(world.tmp.name).write(join(Record("table"), after, "n", 0), None)
    error = handled(world, {**FREE, "predecessor": "Ingestion"}).error

    assert error is not None
    assert (error.field, "first.run" in error.message, world.command) == ("SOAL_TURNS", True, None)


def test_a_job_runs_only_as_long_as_its_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child's supervisor checks it."""
    supervise, asked = world.supervise, []

    def until_it_is_over(*given: Any, may_go_on: Any, **more: Any) -> Any:
        asked.append(may_go_on())
        may_go_on.__self__._coordinator.held._sure_until_s = 0.0
        asked.append(may_go_on())
        return supervise(*given, **more)

    monkeypatch.setattr(world, "supervise", until_it_is_over)
    handled(world)
    assert asked == [True, False]


@pytest.mark.slow
def test_a_run_that_has_completed_its_turn_completes_no_other_one_however_long_ago(world: World) -> None:
    """The lock remembers a job's last runs; the run's own record remembers its turn as long as it exists."""
    scripts = {"Ingestion": "s3://scripts/ingestion.py", "Mutation": "s3://scripts/mutation.py"}
    ingestion, mutation = ({"script": script} for script in scripts.values())
    turns = json.dumps({"table": {"Ingestion": ingestion, "Mutation": {**AFTER, **mutation}}})

    def turn(job: str, number: int) -> Any:
        return world.handle({"script": scripts[job], "clientToken": f"{job}-{number}"}, SOAL_TURNS=turns)

    for number in range(RUNS_MAX + 1):
        for job in scripts:
            assert turn(job, number).state == "SUCCESS"
    completions = record(world).completions
    assert not has_completed(record(world), "Ingestion", "Ingestion-0")

    for attempt, fails in ((2, True), (3, False)):
        world.end["exit_code"] = int(fails)
        result = turn("Ingestion", 0)
        assert (result.state == "FAILED", result.attempt) == (fails, attempt)
    assert (record(world).history[-1].end, record(world).completions) == (End.REPEATED, completions)
    assert "waits for the next turn that Ingestion completes" in turn("Mutation", 51).state_details
    assert turn("Ingestion", 51).state == turn("Mutation", 51).state == "SUCCESS"


def test_a_token_belongs_to_one_turn(world: World) -> None:
    """A script may be two jobs: a run of one, whose writes are skipped, completes no turn of the other."""
    turns = json.dumps({"table": {"Mutation": FREE}, "other": {"Mutation": FREE}})
    for lock, is_refused in (("table", False), ("other", True), ("table", False)):
        event = {**EVENT, "coordination": {"lock.name": lock}}
        world.may_run = False
        error = world.handle(event, SOAL_TURNS=turns).error
        assert (error is not None, world.may_run) == (is_refused, not is_refused)
        if error is not None:
            assert (error.field, error.usage) == ("clientToken", True)
            assert "for the turn of Mutation on table, and now it is for the turn of Mutation on other" in error.message
    other = by_name(world.tmp.name).read("other")
    assert other is not None
    assert [past.end for past in other.record.history] == [End.FAILED]


def test_a_run_that_did_its_work_without_a_turn_completes_none(world: World) -> None:
    """The owner declared its script later, or an older version kept no turn: its writes are skipped."""
    assert world.handle().state == "SUCCESS"
    assert handled(world).attempt == 2
    assert [past.end for past in record(world).history] == [End.REPEATED]


def test_a_turn_that_did_not_count_is_completed_by_a_retry(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock service did not accept it, and the successors wait: the run's record claims no more than the lock."""
    with monkeypatch.context() as away:
        away.setattr("safewriter.coordination.turn.Turn.release", lambda *_: False)
        assert handled(world).state == "SUCCESS"
    backend = by_name(world.tmp.name)
    backend.write(end(record(world), End.EXPIRED, 0), backend.read("table"))
    assert handled(world).attempt == 2
    assert [past.end for past in record(world).history] == [End.EXPIRED, End.COMPLETED]
