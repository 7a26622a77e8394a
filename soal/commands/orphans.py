"""`soal orphans`: find, and on request delete, files that no version of a table needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from safewriter.errors import UnsupportedError
from safewriter.identity import canonical_table
from safewriter.tables.iceberg.name import TableName
from soal.console.problem import EXIT_FAILED, EXIT_TRY_AGAIN, Failure, Problem
from soal.console.progress import Counting
from soal.orphans.age import parse_age
from soal.orphans.log_actions import UnreadableLogError
from soal.orphans.protection import Attempts
from soal.orphans.retained import LogMovedError
from soal.orphans.survey import Survey, delete
from soal.orphans.views import iceberg_view, orphans_view
from soal.s3_command import Call, s3_command
from soal.target import checkpoint_bucket, no_bucket

if TYPE_CHECKING:
    from datetime import timedelta

    from safewriter.objects import Location
    from soal.console.output import Output


@s3_command()
def orphans(
    call: Call,
    table: Annotated[
        str,
        typer.Argument(help="A Delta table's path, s3a://bucket/path, or an Iceberg table, catalog.namespace.table."),
    ],
    older_than: Annotated[str, typer.Option(help="Only files older than this, by S3's clock: 7d, 36h, 90m.")] = "7d",
    *,
    delete_them: Annotated[bool, typer.Option("--delete", help="Delete them; without it they are only shown.")] = False,
    unguarded: Annotated[
        bool, typer.Option("--unguarded", help="No writer of the table uses SafeWriter: read no checkpoint bucket.")
    ] = False,
    allow_young: Annotated[
        bool, typer.Option("--allow-young", help="Allow --older-than below nine hours. No job may write meanwhile.")
    ] = False,
) -> None:
    """Find files in a table's folder that no version refers to. Killed jobs leave them, also deletion vectors.

    For an Iceberg table, name the catalog in pyiceberg's variables. The command then deletes nothing: it shows the
    files that no snapshot names, the fences that settlers have set, and the Spark SQL statements that remove both.

    Exit codes: 0 done, 1 the table cannot be judged or something could not be deleted, 75 the table has changed
    meanwhile: run the command again.
    """
    age = parse_age(older_than, allow_young=allow_young)
    if "/" not in table:
        _iceberg(call, table, age, delete_them=delete_them)
        return
    location = _table(table)
    attempts = None if unguarded else _attempts(call, location, is_needed=delete_them)
    store = call.target.store(location)
    with Counting(call.out.talk, f"looking at {location}") as counting:
        survey = Survey(store, location, age, attempts, counting.show)
        try:
            report, retained = survey.look()
            problem = None
            if delete_them:
                counting.says("deleting")
                report, problem = delete(store, report, retained, counting.show)
        except UnreadableLogError as error:
            raise Failure(f"{location} cannot be judged: {error}", todo=error.todo) from error
        except LogMovedError as error:
            raise Problem(str(error), todo="run it again", exit_code=EXIT_TRY_AGAIN) from error
    call.out.show(orphans_view(report))
    _say(call.out, problem, has_failed=report.has_failed, dry_run=report.dry_run)


def _iceberg(call: Call, table: str, age: timedelta, *, delete_them: bool) -> None:
    from soal.orphans.iceberg import look  # pyiceberg takes a second to import; Delta does not need it

    if delete_them:
        raise Problem(
            "soal deletes nothing of an Iceberg table", todo="leave --delete out, and run the statements that it shows"
        )
    try:
        name = TableName.parse(table)
    except UnsupportedError as error:
        raise Problem(str(error), todo="give s3a://bucket/path or catalog.namespace.table") from error
    with Counting(call.out.talk, f"looking at {name}") as counting:
        report = look(call.target.client(), name, age, counting.show, call.target.catalogs.get(name.catalog, {}))
    call.out.show(iceberg_view(report))


def _say(out: Output, problem: str | None, *, has_failed: bool, dry_run: bool) -> None:
    if problem is not None:
        out.remark(f"ended early: {problem}")
        raise typer.Exit(EXIT_TRY_AGAIN)
    if has_failed:
        raise typer.Exit(EXIT_FAILED)
    if dry_run:
        out.remark("nothing was changed; --delete deletes all that is not held")


def _table(table: str) -> Location:
    try:
        return canonical_table(table)
    except UnsupportedError as error:
        raise Problem(str(error), todo="give the table's path: s3a://bucket/path") from error


def _attempts(call: Call, table: Location, *, is_needed: bool) -> Attempts | None:
    if checkpoint_bucket(call.target, call.bucket) is not None:
        return Attempts(call.checkpoints(), table)
    if is_needed:
        problem = "no checkpoint bucket is named, and --delete must know the table's open writes"
        raise no_bucket(problem, call.home, "if no writer of the table uses SafeWriter, add --unguarded")
    return None
