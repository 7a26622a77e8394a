"""The job of a MicroVM, without Spark: its ids, its deadline, its result, and the end of the MicroVM."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from handler import observability
from handler.microvm import job as module
from handler.microvm.job import Jobs, terminate
from handler.microvm.lifecycle import Call
from handler.microvm.renewal import ClockError
from handler.microvm.warm_up import WarmUp
from handler.process.child import Ended, Stop
from handler.services import Services
from safewriter import entropy
from safewriter.deadline import epoch_ms
from safewriter.entropy import unique_id
from safewriter.objects import s3
from tests.unit.handler.world import COMMITTED, EVENT, World

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from handler.process.child import Shutdown

CALL = Call("mvm-1", json.dumps(EVENT))


class Machine:
    """A MicroVM with a child that is a function."""

    def __init__(self, tmp_path: Path, **environment: str) -> None:
        self.world = World(tmp_path)
        self.ended: list[str] = []
        services = Services(
            client=lambda: self.world,
            store=lambda _: self.world.store,
            start_child=self.world.start_child,
            supervision=lambda *_, **__: self.world,  # type: ignore[arg-type]
            invoke=self.world.invoke,
        )
        variables = {"SW_CHECKPOINT_BUCKET": "checkpoints", "TMPDIR": str(tmp_path), **environment}
        self.jobs = Jobs(
            variables, 3008, services, WarmUp(tmp_path), terminate=self.ended.append, set_clock=lambda _ask: None
        )

    def run(self, call: Call = CALL) -> dict[str, Any]:
        self.jobs.run(call)
        (result,) = [body for key, body in self.results() if key == f"results/{call.microvm_id}/run_result.json"]
        return result

    def results(self) -> list[tuple[str, dict[str, Any]]]:
        keys = [listed.key for listed in self.world.store.list("results/")]
        return list(zip(keys, self.world.stored("results/"), strict=True))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_result_lies_under_the_run_and_under_the_microvm(machine: Machine) -> None:
    """Who has started the MicroVM knows no other name."""
    result = machine.run()
    assert (result["state"], result["clientToken"]) == ("SUCCESS", "t")
    assert dict(machine.results())[f"results/{result['runId']}/run_result.json"] == result
    assert machine.ended == ["mvm-1"]


def test_the_microvm_ends_after_both_results_are_stored(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lambda may stop it at once."""
    stored: list[int] = []
    monkeypatch.setattr(machine.jobs, "terminate", lambda _: stored.append(len(machine.results())))
    machine.run()
    assert stored == [2]


def test_the_microvm_ends_after_a_fault_of_the_handler(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would cost money until its maximum duration."""

    def broken(*_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(module, "handle", broken)
    machine.jobs.run(CALL)
    assert machine.ended == ["mvm-1"]


def test_a_microvm_is_ended_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the service that has started it."""
    asked: list[tuple[str, dict[str, str]]] = []

    def client_of(service: str, _config: object) -> SimpleNamespace:
        return SimpleNamespace(terminate_microvm=lambda **names: asked.append((service, names)))

    monkeypatch.setattr(module, "client_of", client_of)
    terminate("mvm-1")
    assert asked == [("lambda-microvms", {"microvmIdentifier": "mvm-1"})]


def test_a_result_that_cannot_be_stored_is_in_the_log(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else is told of it."""
    errors: list[str] = []
    monkeypatch.setattr(observability.logger, "error", lambda text, *words: errors.append(text % words))
    put = machine.world.store.put

    def denied(key: str, body: bytes) -> None:
        if "mvm-1" in key:
            raise OSError("AccessDenied")
        put(key, body)

    monkeypatch.setattr(machine.world.store, "put", denied)
    machine.jobs.run(CALL)
    (error,) = errors
    assert "AccessDenied" in error
    assert '"state": "SUCCESS"' in error


def test_the_metrics_of_the_job_are_written_before_the_microvm_ends(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    """No Lambda runtime does it here. Each is the first event of its environment."""
    machine.run()
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    assert [(one["StateSuccess"], one["ColdStart"]) for one in told] == [([1.0], [1.0])]


def test_a_wrong_event_has_its_result_there_too(machine: Machine) -> None:
    """A hook's answer cannot carry it: nobody reads it."""
    result = machine.run(Call("mvm-1", '{"entryPoint": 1}'))
    assert (result["state"], result["runId"]) == ("FAILED", None)
    assert machine.ended == ["mvm-1"]


def test_settings_that_are_wrong_end_the_microvm(tmp_path: Path) -> None:
    """Without a bucket there is no place for a result; the log has the reason."""
    machine = Machine(tmp_path, SW_CHECKPOINT_BUCKET="")
    machine.jobs.run(CALL)
    assert (machine.results(), machine.ended) == ([], ["mvm-1"])


def test_a_microvm_that_cannot_end_itself_is_no_failure(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lambda ends it at its maximum duration."""

    def denied(_: str) -> None:
        raise OSError("AccessDenied")

    monkeypatch.setattr(machine.jobs, "terminate", denied)
    assert machine.run()["state"] == "SUCCESS"


def test_no_job_starts_under_a_wrong_clock(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its leases would be in the past; the result says what to do."""

    def wrong(_ask: Callable[[], Any]) -> None:
        raise ClockError("wrong by 600 s")

    monkeypatch.setattr(machine.jobs, "set_clock", wrong)
    result = machine.run()
    assert "wrong by 600 s" in result["stateDetails"]
    assert machine.world.command is None


def test_the_deadline_is_the_microvm_s_without_a_minute(tmp_path: Path) -> None:
    """The MicroVM's time begins before the hook, and ends with the hook that settles; of a short time it is a tenth."""
    for timeout_s, job_s in ((3600, 3540), (28_800, 28_740), (100, 90)):
        machine = Machine(tmp_path, SOAL_TIMEOUT_S=str(timeout_s))
        began_ms = epoch_ms()
        machine.run()
        assert machine.world.command is not None
        at_ms = int(machine.world.command.variables["SOAL_DEADLINE_EPOCH_MS"])
        assert began_ms + job_s * 1000 <= at_ms <= epoch_ms() + job_s * 1000


def test_a_run_that_could_go_on_does_not_continue_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no function to invoke."""
    machine = Machine(tmp_path, SOAL_CONTINUE_MAX="5")
    machine.world.end = {"exit_code": None, "signal": 9, "stop": Stop.KILLED}
    run_id = "e" * 32
    monkeypatch.setattr(module, "unique_id", lambda: run_id)
    machine.world.reports = (replace(COMMITTED, run_id=run_id),)
    result = machine.run()
    assert (result["state"], result["progressed"]) == ("INCOMPLETE", True)
    assert machine.world.invoked == []


def test_a_hurried_job_is_stopped_by_its_shutdown(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets SIGTERM now, and the time that follows it at any deadline; records have the true time."""
    seen: list[int] = []

    def supervise(shutdown: Shutdown, *, shutdown_clock: Callable[[], int], **_: object) -> Ended:
        before = shutdown.terminate_at_ms - shutdown_clock()
        machine.jobs.expire_deadline()
        after = shutdown_clock()
        seen.extend((before, shutdown.terminate_at_ms - after, shutdown.kill_at_ms - after))
        return World.supervise(machine.world)

    monkeypatch.setattr(machine.world, "supervise", supervise)
    result = machine.run()
    assert result["timings"]["totalMs"] < 600_000
    before, terminate_in_ms, kill_in_ms = seen
    assert before > 700_000
    assert terminate_in_ms <= 0 < kill_in_ms < 10_000
    (record,) = machine.world.stored("runs/")
    assert record["endedMs"] <= epoch_ms()


def test_a_job_that_was_hurried_before_its_deadline_was_planned_is_stopped_too(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hook `terminate` may come right after `run`, while the handler still asks S3 for the time."""
    left_ms: list[int] = []

    def supervise(shutdown: Shutdown, *, shutdown_clock: Callable[[], int], **_: object) -> Ended:
        left_ms.append(shutdown.terminate_at_ms - shutdown_clock())
        return World.supervise(machine.world)

    monkeypatch.setattr(machine.world, "supervise", supervise)
    monkeypatch.setattr(machine.jobs, "set_clock", lambda _ask: machine.jobs.expire_deadline())
    machine.run()
    assert [each <= 0 for each in left_ms] == [True]


def test_a_surprise_before_the_job_has_its_result(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for the MicroVM must not hear that the job may have committed: it has not begun."""

    def surprised(_ask: Callable[[], Any]) -> None:
        raise ValueError("Invalid date")

    monkeypatch.setattr(machine.jobs, "set_clock", surprised)
    result = machine.run()
    assert result["state"] == "FAILED"
    assert "Invalid date" in result["stateDetails"]
    assert machine.world.command is None


def test_a_payload_that_is_no_text_has_its_result(machine: Machine) -> None:
    """JSON may escape half a character."""
    assert machine.run(Call("mvm-1", "\ud800"))["state"] == "FAILED"


def test_the_result_is_kept_before_it_is_counted(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics are lines of the log, which may be full."""

    def full() -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("handler.microvm.job.observability.metrics.flush_metrics", full)
    assert machine.run()["state"] == "SUCCESS"
    assert machine.ended == ["mvm-1"]


def test_ids_and_variables_are_the_microvm_s(machine: Machine) -> None:
    """The request id, which tells copies of one snapshot apart, reaches the job's own processes."""
    machine.run()
    assert machine.world.command is not None
    assert machine.world.command.variables["SOAL_REQUEST_ID"] == "microvm-mvm-1"


def test_two_copies_share_no_run_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their memory, clocks and kernels are the same; only the MicroVM's id is not."""
    now_ns = epoch_ms() * 1_000_000
    monkeypatch.setattr("os.urandom", bytes)
    monkeypatch.setattr("time.time_ns", lambda: now_ns)
    pool, state = vars(entropy._POOL).copy(), random.getstate()
    run_ids = []
    for microvm_id in ("mvm-1", "mvm-2"):
        vars(entropy._POOL).update(pool)
        random.setstate(state)
        folder = tmp_path / microvm_id
        folder.mkdir()
        result = Machine(folder).run(Call(microvm_id, CALL.payload))
        run_ids.append(result["runId"])
    assert len(set(run_ids)) == 2


def test_a_pause_ends_connections_and_old_ids(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also before the event, when only the moment is known."""
    monkeypatch.setattr("os.urandom", bytes)
    monkeypatch.setattr("time.time_ns", lambda: 0)
    for call in (None, CALL):
        client, drawn = s3.shared_client(), unique_id()
        machine.jobs.renew(call)
        assert s3.shared_client() is not client
        assert unique_id() != drawn


def test_the_clock_is_compared_with_that_of_the_checkpoints_bucket(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's leases lie there."""
    asked: list[dict[str, str]] = []
    monkeypatch.setattr(machine.world, "head_bucket", lambda **names: asked.append(names), raising=False)
    monkeypatch.setattr(machine.jobs, "set_clock", lambda ask: ask())
    machine.run()
    assert asked == [{"Bucket": "checkpoints"}]


def test_the_handler_is_closed_to_its_jobs_before_the_first_of_them(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run other people's code, as the same user."""
    done: list[str] = []
    monkeypatch.setattr(module, "close_to_others", lambda: done.append("closed"))
    monkeypatch.setattr(machine.jobs, "warm_ups", SimpleNamespace(run=lambda *_, **__: done.append("warmed up")))
    machine.jobs.warm_up(again=False)
    assert done == ["closed", "warmed up"]
