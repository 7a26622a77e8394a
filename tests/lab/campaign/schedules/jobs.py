"""The processes of a schedule, each as a function that the simulation runs: jobs, sweepers, readers, neighbours."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from safewriter import SafeWriter
from safewriter.block.block import Block
from safewriter.deadline import Deadline, epoch_ms
from safewriter.errors import UnknownOutcomeError
from safewriter.identity import Attempt, Run, Write, canonical_table
from safewriter.objects.location import Location
from safewriter.objects.store import StoreError
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import OPEN, CommitPoint, Status
from safewriter.schedule import LEAD_MS, Schedule
from safewriter.settings import Settings
from safewriter.settle.recovery import Recovery
from safewriter.settle.supervisor import Supervision
from safewriter.settle.sweeper import Sweeper
from tests.lab.campaign.schedules.hadoop import DeniedError, JavaError, Objects
from tests.lab.campaign.schedules.java import DeltaSession
from tests.lab.campaign.schedules.log import LAKE, ROOT, TABLE, added, body_of, creation, key_of
from tests.lab.campaign.schedules.simulation import SECOND, Killed, simulation
from tests.lab.campaign.schedules.surroundings import store_of
from tests.lab.campaign.schedules.witness import BUCKET, rows_of

if TYPE_CHECKING:
    from safewriter.objects.s3 import S3ObjectStore
    from safewriter.record.journal import Journal
    from tests.lab.campaign.schedules.plan import Batch, Member
    from tests.lab.campaign.schedules.simulation import Process
    from tests.lab.campaign.schedules.witness import Rows

__all__ = ["Call", "Look", "Outcome", "append", "look", "make_table", "run_job", "supervise", "sweep", "write_of"]

Outcome = Literal["done", "there", "failed", "nothing", "unknown"]
"""What a caller knows: its rows are there by this job, or by whichever; this job's are not; nothing was claimed."""
_REBASES: Final = 20


@dataclass(slots=True)
class Call:
    """A job as its caller sees it. `called` and `answered` are numbers in the order of all such moments. `undoable`: a
    settler may take its rows out again, since the script has failed or `success()` has to be called.
    """

    batch: int
    key: str
    called: int
    nonce: str = ""
    undoable: bool = False
    outcome: Outcome = "unknown"
    answered: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """What a reader has found: the attempts whose rows are there, and how many rows of neighbours."""

    called: int
    answered: int
    rows: frozenset[Rows]
    others: int


class ScriptError(Exception):
    """The script's own error."""


class Spark:
    """A Spark session, as far as SafeWriter tells two of them apart."""


def write_of(batch: int, run_id: str) -> Write:
    """Return the write of a batch."""
    return Write(Run(f"run-{batch}", run_id, "request", "job"), canonical_table(TABLE), "delta", None)


def recovery(catalog: Checkpoints, may_go_on: Any = lambda: True) -> Recovery:
    """Return a settler."""
    return Recovery(catalog, _table_store, clock=epoch_ms, may_go_on=may_go_on)


def _table_store(uri: str) -> S3ObjectStore:
    return store_of(Location.parse(uri))


def run_job(call: Call, member: Member, batch: Batch, client: Any, journal: str | None) -> None:
    """Run a job: a script with one guarded block. The call gets its outcome, unless the process dies."""
    process = simulation().actor.process
    write = write_of(member.batch, process.name)
    deadline = None
    if member.deadline:
        now_ms = epoch_ms()
        deadline = Deadline(now_ms + member.deadline // 1000, now_ms)
    checkpoints = Checkpoints(store_of(Location(BUCKET)))
    session: Any = DeltaSession(client)
    block = Block(
        table=session.table,
        write=write,
        attempt=Attempt.draw(),
        commit_point=CommitPoint.SUCCESS if batch.success else CommitPoint.WRITE,
        schedule=None if deadline is None else Schedule.of(deadline, LEAD_MS),
        checkpoints=checkpoints,
        recovery=recovery(checkpoints, lambda: deadline is None or deadline.remaining_ms() > 0),
        session=session,
        batch=None,
        journal=journal,
    )
    call.nonce, call.undoable = block.attempt.nonce, batch.success or member.script == "forgets"
    spark: Any = Spark()
    sw = SafeWriter.around(spark, block)
    try:
        with sw:
            try:
                _script(sw, session, member, batch)
            except Exception:
                call.undoable = True
                raise
    except Exception as error:  # noqa: BLE001 - the caller sees whatever it is
        call.error = f"{type(error).__name__}: {error}"
        call.outcome = _outcome(sw, error)
    else:
        call.outcome = "there" if sw.already_committed else _outcome(sw, None)
    if simulation().actor.process.dead:
        raise Killed


def _script(sw: SafeWriter, session: DeltaSession, member: Member, batch: Batch) -> None:
    if sw.already_committed:
        sw.success()
        return
    if member.script == "raises":
        raise ScriptError
    removes = f"bystander-{member.batch}.parquet" if batch.removes else None
    session.write(batch.files, removes=removes, work=member.work)
    if member.script == "raises late":
        raise ScriptError
    if member.script == "right":
        sw.success()


def _outcome(sw: SafeWriter, error: Exception | None) -> Outcome:
    """Return what the answer of a block says; its document counts as SafeWriter last saw it."""
    document = sw.checkpoint
    if document is None or sw.already_committed:
        return "unknown" if isinstance(error, UnknownOutcomeError) else "nothing"
    if document.owner != sw._block.attempt.nonce or document.status in OPEN or document.incomplete is not None:
        return "unknown"
    if document.status is Status.ROLLED_BACK:
        return "failed"
    return "done" if error is None and sw._ending is not None and sw._ending.succeeded else "there"


def supervise(call: Call, journal: Journal, child: Process) -> None:
    """Watch over a job as its handler does: renew its leases, and settle what it leaves open.

    The call gets the handler's verdict, if the job itself gave no answer.
    """
    world = simulation()
    supervision = Supervision(journal, Settings(Location(BUCKET)))
    while not child.has_ended:
        supervision.renew_leases()
        until = world.now + 7 * SECOND
        while world.now < until and not child.has_ended:
            world.sleep(SECOND)
    world.kill(child)
    reports = supervision.settle(budget_ms=30_000)
    if call.answered is None and len(reports) == 1:
        report = reports[0]
        told: dict[Status, Outcome] = {Status.COMMITTED: "there", Status.ROLLED_BACK: "failed"}
        call.outcome = "unknown" if report.incomplete is not None else told.get(report.status, "unknown")


def sweep() -> None:
    """Run the sweeper once."""
    world = simulation()
    checkpoints = Checkpoints(store_of(Location(BUCKET)))
    until = world.now + 240 * SECOND

    def may_go_on() -> bool:
        return simulation().now < until

    sweeper = Sweeper(
        checkpoints,
        recovery(checkpoints, may_go_on),
        epoch_ms,
        may_go_on,
        draw=world.actor.process.random.random,
        threads=2,
    )
    try:
        sweeper.sweep()
    except StoreError:
        return  # it could not list the markers; the next one may


def look(client: Any, called: int) -> tuple[frozenset[Rows], int] | None:
    """Read the table's newest version from its log alone; None if S3 does not answer."""
    objects = Objects(client)
    live: dict[str, bool] = {}
    try:
        for version, _ in objects.versions(-1):
            body = objects.get(LAKE, key_of(version))
            if body is None:
                return None
            for action in map(json.loads, body.splitlines()):
                if "add" in action:
                    live[action["add"]["path"]] = True
                elif "remove" in action:
                    live.pop(action["remove"]["path"], None)
    except JavaError:
        return None
    rows = [rows_of(path) for path in live]
    return frozenset(one for one in rows if one is not None), sum(one is None for one in rows)


def append(client: Any, *, reads: bool, path: str) -> bool:
    """Append a file to the table without a guard, and return whether it did. `reads`: the commit looks at the table."""
    objects = Objects(client)
    try:
        versions = objects.versions(-1)
        if not versions:
            return False
        objects.put(LAKE, f"{ROOT}/{path}", b"rows")
        info = {
            "timestamp": 1,
            "operation": "MERGE" if reads else "WRITE",
            "operationParameters": {} if reads else {"mode": "Append"},
            "isBlindAppend": not reads,
            "txnId": path,
        }
        for _ in range(_REBASES):
            target = versions[-1][0] + 1
            if objects.create(LAKE, key_of(target), body_of({"commitInfo": info}, added(path))):
                return True
            versions = objects.versions(target - 1)
            if reads:
                return False
    except (JavaError, DeniedError):
        return False
    return False


def make_table() -> bytes:
    """Return version 0 of a table that is there before all, with files that jobs remove."""
    info = {"timestamp": 1, "operation": "CREATE TABLE", "txnId": "made"}
    bystanders = [added(f"bystander-{number}.parquet") for number in range(3)]
    return body_of({"commitInfo": info}, *creation(), *bystanders)
