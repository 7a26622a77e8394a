"""The hooks of a MicroVM in every stage of its life: what Lambda is answered, and what happens when."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from handler.microvm import lifecycle as module
from handler.microvm.lifecycle import Call, Lifecycle
from tests.support.waiting import BUSY_S, until

if TYPE_CHECKING:
    from collections.abc import Iterator


class Work:
    """The main thread's work; each step waits for the test."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.may_end = threading.Semaphore(0)
        self.fails: Exception | None = None
        self.threads: set[int] = set()

    def warm_up(self, *, again: bool) -> None:
        self._wait("again" if again else "warm")
        if self.fails is not None:
            raise self.fails

    def run(self, call: Call) -> None:
        self._wait(call.event)

    def expire_deadline(self) -> None:
        self.done.append("expire_deadline")
        self.may_end.release()

    def renew(self, call: Call | None) -> None:
        self.done.append(("renew", None if call is None else call.microvm_id))

    def _wait(self, what: Any) -> None:
        self.threads.add(threading.get_ident())
        assert self.may_end.acquire(timeout=BUSY_S)
        self.done.append(what)


class Machine:
    """A life on a thread of its own."""

    def __init__(self) -> None:
        self.work = Work()
        self.life = Lifecycle(self.work)
        self.thread = threading.Thread(target=self.life.serve)

    def call(self, hook: str, body: bytes = b"") -> int:
        return int(self.life.hooks[hook](body).status)

    def run(self, event: object = "s3://b/x.py", microvm_id: str = "mvm-1") -> int:
        payload = event if isinstance(event, str) else json.dumps(event)
        return self.call("run", json.dumps({"microvmId": microvm_id, "runHookPayload": payload}).encode())

    def warm(self) -> None:
        self.work.may_end.release()
        assert until(lambda: self.call("ready") != 503)


@pytest.fixture
def machine() -> Iterator[Machine]:
    made = Machine()
    made.thread.start()
    yield made
    for _ in range(3):
        made.work.may_end.release()
    made.life.stop()
    made.thread.join(BUSY_S)


def test_lambda_takes_the_snapshot_once_the_jvm_is_warm(machine: Machine) -> None:
    """Until then each answer is a 503 at once: Lambda asks again, and a held request would use up its time."""
    assert [machine.call(hook) for hook in ("ready", "validate")] == [503, 503]
    assert machine.run() == 503
    machine.warm()
    assert machine.call("ready") == 200


def test_a_failed_warm_up_ends_the_build(machine: Machine) -> None:
    """An image that could run no job must not come into being; the answer says why."""
    machine.work.fails = ValueError("no Java")
    machine.warm()
    assert [machine.call(hook) for hook in ("ready", "validate")] == [500, 500]
    assert "no Java" in machine.life.hooks["ready"](b"").text
    assert machine.run() == 500


def test_a_copy_is_validated_by_another_warm_up(machine: Machine) -> None:
    """Lambda notes which memory it reads, and loads that first later on. It runs once, however often Lambda asks."""
    machine.warm()
    assert [machine.call("validate") for _ in range(3)] == [503, 503, 503]
    machine.work.may_end.release()
    assert until(lambda: machine.call("validate") == 200)
    assert machine.work.done == ["warm", "again"]


def test_a_copy_that_cannot_warm_up_is_not_valid(machine: Machine) -> None:
    """The build fails."""
    machine.warm()
    machine.work.fails = ValueError("gone")
    assert machine.call("validate") == 503
    machine.work.may_end.release()
    assert until(lambda: machine.call("validate") == 500)


def test_the_job_runs_on_after_the_answer(machine: Machine) -> None:
    """A hook has a minute, a job has hours. All work is on one thread, with which the JVM lives."""
    machine.warm()
    assert machine.run({"a": 1}) == 200
    assert machine.work.done == ["warm"]
    machine.work.may_end.release()
    assert until(lambda: machine.work.done == ["warm", {"a": 1}])
    assert machine.work.threads == {machine.thread.ident}


def test_a_repeated_call_starts_no_second_job(machine: Machine) -> None:
    """Lambda repeats a call whose answer was lost; another event is refused, also after the job."""
    machine.warm()
    assert [machine.run("s3://b/x.py"), machine.run("s3://b/x.py"), machine.run("s3://b/y.py")] == [200, 200, 409]
    machine.work.may_end.release()
    assert until(lambda: len(machine.work.done) == 2)
    assert [machine.run("s3://b/x.py"), machine.run("s3://b/x.py", "mvm-2")] == [200, 409]
    assert machine.work.done == ["warm", "s3://b/x.py"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"runHookPayload": "s3://b/x.py"}',
        b'{"microvmId": "", "runHookPayload": "s3://b/x.py"}',
        b'{"microvmId": "../x", "runHookPayload": "s3://b/x.py"}',
        b'{"microvmId": "mvm-1/../x", "runHookPayload": "s3://b/x.py"}',
        b'{"microvmId": 1, "runHookPayload": "s3://b/x.py"}',
        b'{"microvmId": "mvm-1"}',
        b'{"microvmId": "mvm-1", "runHookPayload": {}}',
    ],
)
def test_a_call_without_an_id_or_an_event_starts_nothing(machine: Machine, body: bytes) -> None:
    """Without an id from outside two copies of one snapshot could take each other's write for their own."""
    machine.warm()
    assert machine.call("run", body) == 400
    assert machine.run() == 200


def test_termination_waits_for_the_settled_end_of_the_job(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job's deadline comes at once; after the answer, which comes with the job's end, Lambda ends the machine."""
    monkeypatch.setattr("handler.microvm.lifecycle.logger.error", pytest.fail)
    machine.warm()
    machine.run("s3://b/x.py")
    assert machine.call("terminate") == 200
    assert machine.work.done == ["warm", "expire_deadline", "s3://b/x.py"]
    assert machine.call("terminate") == 200
    assert machine.work.done[-1] == "s3://b/x.py"


def test_termination_is_answered_within_a_hook_s_time(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that does not end is left to the sweeper."""
    monkeypatch.setattr(module, "_END_WAIT_S", 0)
    monkeypatch.setattr(machine.work, "expire_deadline", lambda: None)
    machine.warm()
    machine.run()
    assert machine.call("terminate") == 200
    assert machine.work.done == ["warm"]


def test_a_machine_without_a_job_ends_at_once(machine: Machine) -> None:
    """Nothing is to be settled."""
    machine.warm()
    assert [machine.call(hook) for hook in ("suspend", "terminate")] == [200, 200]
    assert machine.work.done == ["warm"]


def test_no_job_starts_after_the_end_has_been_answered(machine: Machine) -> None:
    """Lambda ends the machine after that answer: it would kill the job in the midst of a write."""
    machine.warm()
    assert machine.call("terminate") == 200
    assert machine.run() == 503
    assert machine.call("terminate") == 200
    assert machine.work.done == ["warm"]


def test_what_a_pause_has_made_old_is_renewed(machine: Machine) -> None:
    """Connections may be gone."""
    machine.warm()
    assert machine.call("resume") == 200
    machine.run(microvm_id="mvm-7")
    assert machine.call("resume") == 200
    assert machine.work.done == ["warm", ("renew", None), ("renew", "mvm-7")]
