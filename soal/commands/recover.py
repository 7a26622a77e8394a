"""`soal recover`: settle open writes of dead runs, or set a verdict that the table can no longer prove."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from safewriter.deadline import epoch_ms
from safewriter.errors import SettingError, UsageError
from safewriter.objects import Location
from safewriter.record.document import Status
from safewriter.settings import audits
from safewriter.settle.one_write import Action
from safewriter.settle.override import override
from soal.console.problem import EXIT_FAILED, EXIT_TRY_AGAIN, Failure, Problem
from soal.local.names import spark_settings
from soal.options import DryRun
from soal.recovery import Recoverer, marked_keys, recovered_view
from soal.runs.ledger import MAY_BE_OF_RUN, Ledger, remarks
from soal.s3_command import Call, s3_command

if TYPE_CHECKING:
    from soal.recovery import Recovered
    from soal.target import Target


class Verdict(StrEnum):
    """The verdicts that a person may set."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled_back"


@s3_command()
def recover(
    call: Call,
    run: Annotated[str | None, typer.Option("--run", help="Only the writes of this run key.")] = None,
    verdict: Annotated[
        Verdict | None, typer.Option(help="Set the verdict of a write that stays open: committed or rolled_back.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why; kept in the document and in the audit log.")] = "",
    write: Annotated[str | None, typer.Option("--write", help="Only this write key, if a run has several.")] = None,
    limit_s: Annotated[int, typer.Option(min=1, help="Settle for at most this many seconds.")] = 300,
    *,
    dry_run: DryRun = False,
) -> None:
    """Settle the open writes of dead runs, and clean up after them. Needs no Spark, and leaves live runs alone.

    Without --run it covers all writes with a marker. Exit codes: 0 all are settled, 1 a write could not be settled or
    read, or an object that may be one of the run's could not be read, 75 a run is still alive.
    """
    ledger = Ledger(call.checkpoints(), epoch_ms)
    keys, unread = _keys(ledger, run, write)
    for remark in remarks(unread, MAY_BE_OF_RUN):
        call.out.remark(remark)
    if not keys and run is not None:
        raise _no_write(run, write, unread)
    if verdict is not None:
        if unread:
            raise Problem(
                "--verdict without --write is for a run whose documents can all be read",
                todo=f"name the write with --write; its key is in: soal runs show {run}",
            )
        _by_hand(ledger, keys, verdict, reason, dry_run=dry_run)
    recoverer = _recoverer(ledger, call.target, limit_s)
    recovered = recoverer.settle_all(keys, dry_run=dry_run)
    call.out.show(recovered_view(recovered))
    if run is None and write is None and not dry_run:
        recoverer.forget_leases()
    if dry_run:
        call.out.remark("nothing was changed")
    if code := EXIT_FAILED if unread else _exit_code(recovered):
        raise typer.Exit(code)


def _keys(ledger: Ledger, run: str | None, write: str | None) -> tuple[tuple[str, ...], list[str]]:
    """Return the keys of the writes, and the URIs of unreadable documents that may hide another one of the run."""
    if run is None:
        return (marked_keys(ledger.store) if write is None else (write,)), []
    found, unread = ledger.writes(run)
    keys = tuple(entry.write_key for entry in found)
    if write is None:
        return keys, unread
    return (write,) if write in keys or ledger.checkpoints.uri(write) in unread else (), []


def _no_write(run: str, write: str | None, unread: list[str]) -> Problem:
    if unread:
        return Failure(
            f"no document or marker that can be read is of run {run!r}",
            todo="restore an earlier version of what cannot be read; the bucket keeps it for some days",
        )
    return Failure(
        f"run {run!r} has no {'such ' if write else ''}guarded write",
        todo="see the runs with: soal runs list",
    )


def _by_hand(ledger: Ledger, keys: tuple[str, ...], verdict: Verdict, reason: str, *, dry_run: bool) -> None:
    """Set the verdict of one write; check every argument before any change."""
    todo = "give --run, and --write if the run has several; try to settle it first, without --verdict"
    if dry_run:
        raise Problem("--verdict changes a document, --dry-run changes nothing", todo="leave one of them out")
    if len(keys) != 1:
        raise Problem(f"--verdict is for one write, and these are {len(keys)}", todo=todo)
    try:
        override(ledger.checkpoints, keys[0], Status(verdict), reason, epoch_ms)
    except UsageError as error:
        raise Problem(str(error), todo=todo) from error


def _recoverer(ledger: Ledger, target: Target, limit_s: int) -> Recoverer:
    try:
        audit_log = audits(os.environ)
    except SettingError as error:
        raise Problem(str(error), todo="correct the variable, or unset it") from error
    named = [spark_settings(name, properties) for name, properties in target.catalogs.items()]
    return Recoverer(
        ledger.store,
        lambda uri: target.store(Location.parse(uri)),
        epoch_ms,
        audit_log,
        epoch_ms() + limit_s * 1000,
        {key: value for settings in named for key, value in settings.items()},
    )


def _exit_code(recovered: list[Recovered]) -> int:
    if any(entry.action in (Action.FAILED, Action.UNREADABLE) or entry.status == Status.UNKNOWN for entry in recovered):
        return EXIT_FAILED
    return EXIT_TRY_AGAIN if any(entry.action == Action.ALIVE for entry in recovered) else 0
