"""The views of `soal orphans`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from soal.console.view import View, columns, moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from soal.orphans.iceberg import IcebergReport
    from soal.orphans.report import Orphan, OrphanReport, OrphanUpload

_SHOWN_MAX: Final = 100


def orphans_view(report: OrphanReport) -> View:
    """Show the orphans and uploads, and count all other files."""
    return View(report.document(), tuple(_lines(report)))


def iceberg_view(report: IcebergReport) -> View:
    """Show the orphans and fences of an Iceberg table, their numbers, and the statements to run."""
    return View(report.document(), tuple(_iceberg_lines(report)))


def _iceberg_lines(report: IcebergReport) -> Iterator[RenderableType]:
    for orphan in report.orphans[:_SHOWN_MAX]:
        yield Text(f"{moment(orphan.last_modified)}  {orphan.bytes:,}  {orphan.path}")
    if len(report.orphans) > _SHOWN_MAX:
        yield Text(f"  and {len(report.orphans) - _SHOWN_MAX:,} more; --json names all", style="dim")
    for fence in report.fences:
        yield Text(f"fence {fence.name}, made {moment(fence.made)}, expires {moment(fence.expires)}")
    size = sum(orphan.bytes for orphan in report.orphans)
    yield Text(
        f"{report.table}: no snapshot names {len(report.orphans):,} files ({size:,} bytes) below {report.location};"
        f" {report.retained.files:,} are named, {report.young.files:,} are too young; {len(report.fences):,} fences"
    )
    for other in report.other_tables[:_SHOWN_MAX]:
        yield Text(f"another table lies in {other}: do not call remove_orphan_files, which deletes its files", "red")
    for statement in report.statements:
        yield Text(statement, "yellow")


def _lines(report: OrphanReport) -> Iterator[RenderableType]:
    rows = [*map(_file, report.orphans), *map(_upload, report.uploads)]
    if rows:
        table = columns("kind", "key", "bytes", "since", "done", right=("bytes",))
        for row in rows[:_SHOWN_MAX]:
            table.add_row(*row)
        yield table
        if len(rows) > _SHOWN_MAX:
            yield Text(f"  and {len(rows) - _SHOWN_MAX:,} more; --json names all", style="dim")
    free = [orphan for orphan in report.orphans if orphan.held is None]
    size = sum(orphan.bytes for orphan in free)
    state = "may be deleted" if report.dry_run else "should have been deleted"
    yield Text(
        f"{report.table}, version {report.version}: {len(free):,} files ({size:,} bytes) {state},"
        f" {len(report.orphans) - len(free):,} are held; {report.retained.files:,} are referred to,"
        f" {report.young.files:,} are too young, {report.other.files:,} are no files of the table"
    )
    for write in report.open_writes or ():
        run = "an unknown table" if write.run_key is None else f"run {write.run_key}"
        yield Text(f"open since {moment(write.since)}: {write.write_key} ({run}); nothing younger is deleted", "yellow")
    for folder in report.other_tables:
        yield Text(f"another table lies in {folder} and is left alone", "yellow")


def _file(orphan: Orphan) -> tuple[str | Text, ...]:
    state = "deleted" if orphan.deleted else orphan.error or orphan.held or ""
    return orphan.kind.value, Text(orphan.key), f"{orphan.bytes:,}", moment(orphan.last_modified), Text(state)


def _upload(upload: OrphanUpload) -> tuple[str | Text, ...]:
    state = "aborted" if upload.aborted else upload.error or upload.held or ""
    return "upload", Text(upload.key), "", moment(upload.initiated), Text(state)
