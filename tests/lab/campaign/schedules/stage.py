"""The processes of a schedule on their stage: S3, the clock, and the callers of the jobs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from safewriter.record.journal import Journal
from tests.lab.campaign.schedules import jobs
from tests.lab.campaign.schedules.log import LAKE, ROOT, key_of
from tests.lab.campaign.schedules.plan import Member
from tests.lab.campaign.schedules.s3 import S3, Client
from tests.lab.campaign.schedules.simulation import SECOND
from tests.lab.campaign.schedules.witness import BUCKET, Broken, Witness

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack
    from pathlib import Path

    from tests.lab.campaign.record import Violation
    from tests.lab.campaign.schedules.plan import Faults, Plan
    from tests.lab.campaign.schedules.simulation import Process, Simulation
    from tests.lab.campaign.schedules.wire import Hit

__all__ = ["Stage"]

_CALM: Final = 200_000 * SECOND
"""Longer than any deadline and grace, and more than any two clocks differ."""
_A_WHILE: Final = 3600 * SECOND
_TRIES: Final = 4
_SWEEPS: Final = 2


@dataclass
class Stage:
    """The processes of a schedule, and what their callers and readers were told."""

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
        """Return the next number in the order of all calls and answers."""
        self.moments += 1
        return self.moments

    # -- members -------------------------------------------------------------------------------------------------------

    def start(self, member: Member) -> None:
        """Let a member take part."""
        process = self.world.process(
            member.name, skew_ms=member.skew_ms, slow=member.slow, faults=_by_request(member.faults)
        )
        acts: dict[str, Callable[[], None]] = {
            "job": lambda: self._job(member, process),
            "sweeper": jobs.sweep,
            "reader": self._look,
            "neighbour": lambda: self._append(member),
            "eraser": self._erase,
        }
        self.world.spawn(process, acts[member.kind], delay=member.start)

    def _job(self, member: Member, process: Process) -> None:
        number = member.batch
        if not member.again and any(one.batch == number and one.outcome in ("done", "there") for one in self.calls):
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
        if call.outcome in ("done", "there"):
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

    def _erase(self) -> None:
        """Delete the documents that are settled. An open one's live owner could not be told from a dead one's."""
        for key in self.s3.listed(BUCKET, "checkpoints/", ""):
            if json.loads(self.s3.bucket(BUCKET)[key].body)["status"] in ("committed", "rolled_back"):
                self.s3.delete(BUCKET, key)

    # -- the end -------------------------------------------------------------------------------------------------------

    def play(self) -> None:
        """Let everything happen. Then the sweeper settles, and each caller without an answer tries again, without
        faults. At last what is later than all that arrives, and what has stood still goes on.
        """
        for member in self.plan.members:
            self.start(member)
        self._sweep("last")
        for number in range(len(self.plan.batches)):
            self._try_again(number)
        self._start_alone(Member("last reader", "reader", 0))
        self.world.run()
        self._sweep("very last")
        self._start_alone(Member("very last reader", "reader", 0))

    def _sweep(self, name: str) -> None:
        """Let the sweeper come until nothing is left for it: it may settle first, and clean behind a grace."""
        for number in range(_SWEEPS):
            self.world.run(self.world.now + _CALM)
            if not self.s3.listed(BUCKET, "open/", ""):
                break
            self._start_alone(Member(f"{name} sweeper{number}", "sweeper", 0))

    def _start_alone(self, member: Member) -> None:
        self.start(member)
        self.world.run(self.world.now + _A_WHILE)

    def _try_again(self, batch: int) -> None:
        for again in range(_TRIES):
            before = len(self.calls)
            self._start_alone(Member(f"last job{batch}.{again}", "job", 0, batch=batch, again=True))
            if self.calls[before].outcome in ("done", "there"):
                return
        if not self._needs_a_person(self.calls[-1].key):
            self.broke("retry_failed", f"batch {batch}: {self.calls[-1].error}")

    def _needs_a_person(self, key: str) -> bool:
        """Return whether a document was deleted while its write was open, and the next one says that rows may lack."""
        found = self.s3.bucket(BUCKET).get(f"checkpoints/{key}.json")
        is_incomplete = found is not None and json.loads(found.body)["incomplete"] is not None
        return is_incomplete and any(member.kind == "eraser" for member in self.plan.members)

    def broke(self, kind: Violation, what: str) -> None:
        """Note a broken promise."""
        self.witness.broken.append(Broken(kind, what))


def _by_request(faults: Faults) -> dict[tuple[str, int], Hit]:
    return {(kind, number + more): hit for kind, number, hit in faults for more in range(hit.count)}
