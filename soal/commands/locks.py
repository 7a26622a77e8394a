"""`soal locks …`: the locks of jobs that take turns: holders, waiters, order, past turns."""

from __future__ import annotations

from time import sleep
from typing import TYPE_CHECKING, Annotated, Final

import typer

from safewriter.coordination import probe as conditions
from safewriter.errors import UnsupportedError
from soal.console.problem import EXIT_FAILED, Failure, Problem
from soal.console.view import View
from soal.locks.report import LockReport, lock_view, locks_view, turns_view
from soal.locks.service import LockService, force
from soal.locks.service import forget as strike
from soal.s3_command import Call, s3_command

if TYPE_CHECKING:
    from safewriter.coordination.record import Holder, Record
    from soal.console.output import Output

_TURNS: Final = 10

app = typer.Typer(no_args_is_help=True, help="The locks of jobs that take turns.")

Lock = Annotated[str, typer.Argument(help="The lock's name, as `soal locks list` shows it.")]
Service = Annotated[
    str | None,
    typer.Option(
        "--backend",
        help="The lock service: s3://…, dynamodb://…, zookeeper://…; default: SW_LOCKS, else the checkpoint bucket.",
    ),
]


@app.callback()
def _locks() -> None:
    """The locks of jobs that take turns."""


@app.command("list")
@s3_command()
def show_all(call: Call, backend: Service = None) -> None:
    """List the locks: holder, number of waiting jobs, unsettled writes. Exit code 1 if a record cannot be read."""
    reports, problems = [], []
    with LockService.open(backend, call) as service:
        for name in service.names():
            try:
                reports.append(LockReport.of_lock(service.read(name), _TURNS))
            except Problem as problem:
                problems.append(str(problem))
    call.out.show(locks_view(reports))
    for text in problems:
        call.out.remark(text)
    if problems:
        raise typer.Exit(EXIT_FAILED)


@app.command()
@s3_command()
def show(
    call: Call,
    lock: Lock,
    backend: Service = None,
    for_s: Annotated[float, typer.Option(min=0, help="Watch for this many seconds whether the holder renews.")] = 0.0,
) -> None:
    """Show one lock: its holder, who waits and why, each job's progress, open writes, the last turns.

    Exit code 1 if there is no such lock.
    """
    with LockService.open(backend, call) as service:
        before = stored = service.read(lock)
        if for_s and before.record.holder is not None:
            sleep(for_s)
            stored = service.read(lock)
    call.out.show(lock_view(LockReport.of_lock(stored, _TURNS)))
    if for_s and before.record.holder is not None:
        call.out.remark(_sign_of_life(before.record.holder, stored.record, for_s))


@app.command()
@s3_command()
def history(
    call: Call,
    lock: Lock,
    backend: Service = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many turns.")] = 100,
) -> None:
    """List the turns that have ended, newest first. A lock keeps the last 100."""
    with LockService.open(backend, call) as service:
        call.out.show(turns_view(LockReport.of_lock(service.read(lock), limit)))


@app.command()
@s3_command()
def release(
    call: Call,
    lock: Lock,
    backend: Service = None,
    *,
    by_force: Annotated[bool, typer.Option("--force", help="End the turn although its holder may be alive.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """End the holder's turn by force. The turn does not count as completed.

    The old holder can no longer write: the next holder settles its writes before its own turn begins. A dead holder
    needs no release: its lease expires by itself. Exit codes: 0 released, 1 no job holds the lock, 75 the turn has
    ended meanwhile.
    """
    with LockService.open(backend, call) as service:
        stored = service.read(lock)
        holder = stored.record.holder
        if holder is None:
            raise Failure(
                f"nobody holds {lock}, so there is nothing to release",
                todo=f"see why a job waits with: soal locks show {lock}",
            )
        turn = f"the turn of {_name_of(holder)} on {lock}, token {holder.token}, with {len(holder.writes)} writes"
        if not by_force:
            raise Problem(
                f"a release ends {turn}, although the job may be alive",
                todo=f"if it is dead, its lease of {holder.lease_s:g} s ends by itself; --force ends its turn now",
            )
        if not yes:
            _ask(call.out, f"End {turn}?")
        forced = force(service, stored)
    call.out.show(lock_view(LockReport.of_lock(forced, _TURNS)))
    call.out.remark(f"ended {turn}; the next holder settles {len(forced.record.unsettled)} writes first")


@app.command()
@s3_command()
def forget(
    call: Call,
    lock: Lock,
    write: Annotated[str, typer.Option("--write", metavar="KEY", help="The write key, as soal locks show prints it.")],
    backend: Service = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a write from a lock's record if it cannot be settled, because its checkpoint document is gone.

    Check the table first: if the write still lands, it lands in another job's turn. If a write has a document, the next
    holder settles it, or you set its verdict with: soal recover --write KEY --verdict.
    """
    with LockService.open(backend, call) as service:
        stored = service.read(lock)
        if not yes:
            _ask(call.out, f"Strike write {write} from the record of {lock}, without a verdict?")
        after = strike(service, stored, write)
    call.out.show(lock_view(LockReport.of_lock(after, _TURNS)))


@app.command()
@s3_command()
def probe(call: Call, backend: Service = None) -> None:
    """Test whether a lock service honours conditional writes; exit code 1 if it does not.

    Several writers create and replace one record at the same time. The test leaves this record behind.
    """
    problem = None
    with LockService.open(backend, call) as service:
        try:
            conditions.check(service.backend)
        except UnsupportedError as error:
            problem = str(error)
    document = {"backend": service.uri, "keepsLocks": problem is None, "problem": problem}
    call.out.show(View(document, (f"{service.uri} can keep a lock" if problem is None else problem,)))
    if problem is not None:
        raise typer.Exit(EXIT_FAILED)


def _name_of(holder: Holder) -> str:
    return f"{holder.job} (run {holder.run})" if holder.run else holder.job


def _sign_of_life(before: Holder, now: Record, for_s: float) -> str:
    if now.holder is None or now.holder.nonce != before.nonce:
        return f"the turn of {_name_of(before)} ended within {for_s:g} s"
    renewals = now.holder.beat - before.beat
    if renewals:
        return f"{_name_of(before)} is alive: it renewed {renewals} times in {for_s:g} s"
    if for_s > before.lease_s:
        return f"{_name_of(before)} did not renew for {for_s:g} s: it is dead or frozen, and the next waiter takes over"
    return f"{_name_of(before)} did not renew for {for_s:g} s; its lease is {before.lease_s:g} s"


def _ask(out: Output, question: str) -> None:
    try:
        answer = out.talk.input(f"{question} [y/N] ", markup=False)
    except EOFError:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise Failure("nothing was changed", todo="answer y, or give --yes")
