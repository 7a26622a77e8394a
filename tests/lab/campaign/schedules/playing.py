"""Play a schedule to its end, and judge what happened."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from safewriter.record.journal import Journal
from tests.lab.campaign.schedules import jobs
from tests.lab.campaign.schedules.linearizable import NEVER, Operation, is_linearizable
from tests.lab.campaign.schedules.log import LAKE, ROOT, key_of
from tests.lab.campaign.schedules.plan import Member
from tests.lab.campaign.schedules.s3 import S3, Client
from tests.lab.campaign.schedules.simulation import SECOND, Simulation
from tests.lab.campaign.schedules.witness import BUCKET, Broken, Witness

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.campaign.schedules.plan import Faults, Plan
    from tests.lab.campaign.schedules.simulation import Process
    from tests.lab.campaign.schedules.wire import Hit

__all__ = ["Played", "play"]

_CALM: Final = 200_000 * SECOND
"""Longer than any deadline, grace and clock's error: behind it a caller retries without faults."""
_TRIES: Final = 4


@dataclass
class Played:
    """A schedule after its end."""

    plan: Plan
    broken: list[Broken]
    calls: list[jobs.Call]
    looks: list[jobs.Look]
    requests: int
    versions: int


@dataclass
class _Stage:
    plan: Plan
    world: Simulation
    folder: Path
    stack: ExitStack
    calls: list[jobs.Call] = field(default_factory=list)
    looks: list[jobs.Look] = field(default_factory=list)
    moments: int = 0

    def __post_init__(self) -> None:
        self.witness = Witness(lambda key: key in self.s3.bucket(LAKE))
        self.s3 = S3(self.witness.changed)
        self.client = Client(self.s3)
        self.world.main.process.own["client"] = self.client
        if self.plan.exists:
            for number in range(3):
                self.s3.put(LAKE, f"{ROOT}/bystander-{number}.parquet", b"rows")
            self.s3.put(LAKE, key_of(0), jobs.make_table())

    def moment(self) -> int:
        self.moments += 1
        return self.moments

    # -- members -------------------------------------------------------------------------------------------------------

    def start(self, member: Member) -> None:
        process = self.world.process(
            member.name, skew_ms=member.skew_ms, slow=member.slow, faults=_by_request(member.faults)
        )
        acts: dict[str, Callable[[], None]] = {
            "job": lambda: self._job(member, process),
            "sweeper": jobs.sweep,
            "reader": self._look,
            "neighbour": lambda: self._append(member),
        }
        self.world.spawn(process, acts[member.kind], delay=member.start)

    def _job(self, member: Member, process: Process) -> None:
        number = member.batch
        if not member.again and any(one.batch == number and one.outcome in ("done", "skipped") for one in self.calls):
            return
        batch = self.plan.batches[number]
        batch = batch if self.plan.exists else replace(batch, removes=False)
        call = jobs.Call(number, jobs.write_of(number, "").key, self.moment())
        self.calls.append(call)
        journal = self._begin_handler(call, member, process) if member.handler else None
        jobs.run_job(call, member, batch, self.client, journal)
        if journal is None or call.outcome != "unknown":
            self._answer(call)

    def _answer(self, call: jobs.Call) -> None:
        call.answered = self.moment()
        if call.outcome in ("done", "skipped"):
            self.witness.acknowledge(call.key)

    def _begin_handler(self, call: jobs.Call, member: Member, child: Process) -> str:
        """Start the handler of a job; return the path of the job's journal."""
        handler = self.world.process(
            f"{member.name} handler", skew_ms=member.skew_ms, faults=_by_request(member.handler_faults)
        )
        child.sandbox, child.dies_too, handler.sandbox = handler, member.sandbox, child
        path = self.folder / f"{len(self.calls)}.journal"
        journal = self.stack.enter_context(Journal(path))
        self.stack.callback(path.unlink)

        def supervise() -> None:
            jobs.supervise(call, journal, child)
            if call.answered is None and call.outcome != "unknown":
                self._answer(call)

        self.world.spawn(handler, supervise)
        return str(path)

    def _look(self) -> None:
        called = self.moment()
        found = jobs.look(self.client, called)
        if found is not None:
            self.looks.append(jobs.Look(called, self.moment(), *found))

    def _append(self, member: Member) -> None:
        jobs.append(self.client, reads=member.reads, path=f"{member.name}.parquet")

    # -- the end -------------------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Let the sweeper settle, and each caller without an answer try again, without faults."""
        for number in range(2):
            self.world.run(self.world.now + _CALM)
            self.start(Member(f"last sweeper{number}", "sweeper", 0))
            self.world.run()
        for number in range(len(self.plan.batches)):
            for again in range(_TRIES):
                before = len(self.calls)
                self.start(Member(f"last job{number}.{again}", "job", 0, batch=number, again=True))
                self.world.run()
                if self.calls[before].outcome in ("done", "skipped"):
                    break
                self.world.run(self.world.now + 100 * SECOND)
            else:
                self.broke("retry_failed", f"batch {number}: {self.calls[-1].error}")
        self.start(Member("last reader", "reader", 0))
        self.world.run()

    def broke(self, kind: Any, what: str) -> None:
        self.witness.broken.append(Broken(kind, what))

    def judge(self) -> None:
        for name, error in self.world.errors:
            self.broke("harness_error", f"{name}: {type(error).__name__}: {error}")
        for key in {call.key for call in self.calls}:
            found = self.s3.bucket(BUCKET).get(f"checkpoints/{key}.json")
            status = None if found is None else json.loads(found.body)["status"]
            if status != "committed":
                self.broke("unknown", f"in the end the document of {key} says {status}")
        if not is_linearizable(self._operations(), (("", False),) * len(self.plan.batches)):
            self.broke("order", "no order of the calls explains what the callers and the readers saw")

    def _operations(self) -> list[Operation[Any]]:
        """Return the history: the state is for each batch the attempt that is there, and whether it must stay."""
        operations: list[Operation[Any]] = []
        for call in self.calls:
            answered = NEVER if call.answered is None else call.answered
            operations += _of_call(call, answered, len(operations))
        batches = {call.key: call.batch for call in self.calls}
        for look in self.looks:
            operations.append(Operation(_reading(look, batches), look.called, look.answered))
        return operations


def _of_call(call: jobs.Call, answered: float, number: int) -> list[Operation[Any]]:
    batch, nonce = call.batch, call.nonce

    def lands(state: Any) -> Any:
        return _with(state, batch, (nonce, False)) if not state[batch][0] else None

    def is_done(state: Any) -> Any:
        return _with(state, batch, (nonce, True)) if state[batch][0] in ("", nonce) else None

    def is_there(state: Any) -> Any:
        return _with(state, batch, (state[batch][0], True)) if state[batch][0] else None

    def goes(state: Any) -> Any:
        return _with(state, batch, ("", False)) if state[batch] == (nonce, False) else None

    def is_gone(state: Any) -> Any:
        return state if state[batch][0] != nonce else None

    if not nonce:
        return []
    if call.outcome == "done":
        return [Operation(is_done, call.called, answered)]
    if call.outcome == "skipped":
        return [Operation(is_there, call.called, answered)]
    if call.outcome in ("failed", "nothing"):
        return [
            Operation(lands, call.called, answered, required=False, before=number + 2),
            Operation(goes, call.called, answered, required=False),
            Operation(is_gone, call.called, answered),
        ]
    return [
        Operation(lands, call.called, required=False),
        *([Operation(goes, call.called, required=False)] if call.undoable else []),
    ]


def _with(state: Any, batch: int, value: Any) -> Any:
    return (*state[:batch], value, *state[batch + 1 :])


def _reading(look: jobs.Look, batches: dict[str, int]) -> Callable[[Any], Any]:
    seen = {batches[rows.key]: rows.nonce for rows in look.rows}
    is_single = len({(rows.key, rows.nonce) for rows in look.rows}) == len(seen)

    def act(state: Any) -> Any:
        same = is_single and all(seen.get(batch, "") == nonce for batch, (nonce, _) in enumerate(state))
        return state if same else None

    return act


def _by_request(faults: Faults) -> dict[tuple[str, int], Hit]:
    return {(kind, number + more): hit for kind, number, hit in faults for more in range(hit.count)}


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return this process's folder for journals, in memory if the machine has such a place."""
    return tempfile.TemporaryDirectory(prefix="soal-schedules-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)


def play(plan: Plan) -> Played:
    """Play a schedule. The caller has entered `surroundings()`."""
    folder = Path(_folder().name)
    with ExitStack() as stack, Simulation(plan.seed) as world:
        stage = _Stage(plan, world, folder, stack)
        for member in plan.members:
            stage.start(member)
        world.run()
        stage.recover()
        stage.judge()
        return Played(plan, stage.witness.broken, stage.calls, stage.looks, stage.s3.requests, stage.witness.head + 1)
