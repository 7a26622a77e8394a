"""The views of `soal snapshot`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from rich.text import Text

from safewriter.bounds import shortened
from soal.console.view import View, columns, moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from soal.snapshots.report import (
        BuildReport,
        CleanupReport,
        HealthReport,
        HistoryReport,
        RollbackReport,
        RouteReport,
        SnapshotReport,
        ValueReport,
        ValuesReport,
        VerifyReport,
    )

_SHOWN_MAX: Final = 100


def build_view(report: BuildReport) -> View:
    """Show the snapshot that was built."""
    taken_over = f", {report.taken_over:,} of them taken over," if report.taken_over else ","
    text = (
        f"{report.prefix}: run {report.run_id} is current: {report.rows_written:,} of {report.rows_read:,} rows in"
        f" {report.shards:,} shards ({report.bytes:,} bytes){taken_over} written in {report.write_ms / 1000:,.1f} s,"
        f" published in {report.publish_ms / 1000:,.1f} s"
    )
    return View(report.document(), (Text(text), Text(report.manifest_ref, "dim")))


def snapshot_view(report: SnapshotReport) -> View:
    """Show one snapshot and its shards."""
    return View(report.document(), tuple(_snapshot(report)))


def history_view(report: HistoryReport) -> View:
    """Show one row for each snapshot."""
    table = columns("run", "built", "published", "", "manifest")
    for entry in report.snapshots:
        published = "" if entry.published_at is None else moment(entry.published_at)
        current = Text("current" if entry.is_current else "", "green")
        table.add_row(Text(entry.run_id), moment(entry.created_at), published, current, Text(entry.manifest_ref))
    return View(report.document(), (table if report.snapshots else "no snapshot",))


def value_view(report: ValueReport) -> View:
    """Show only the value."""
    return View(report.document(), () if report.value is None else (Text(report.value),))


def values_view(report: ValuesReport) -> View:
    """Show a row for each key."""
    table = columns("key", "shard", "value", right=("shard",))
    for found in report.values:
        shard = "" if found.shard is None else str(found.shard)
        table.add_row(Text(str(found.key)), shard, Text("" if found.value is None else found.value))
    return View(report.document(), (table,))


def route_view(report: RouteReport) -> View:
    """Show the shard's number and its folder."""
    if report.shard is None:
        text = f"no shard can have the key {report.key}"
    else:
        text = f"shard {report.shard}: {report.db_url or 'it has no rows'}"
    return View(report.document(), (Text(text),))


def health_view(report: HealthReport) -> View:
    """Show the faults, and what was looked at."""
    state = "healthy" if report.is_healthy else f"{len(report.faults):,} faults"
    age = "" if report.age_s is None else f", published {report.age_s:,.0f} s ago"
    text = f"{report.prefix}: {state}; run {report.run_id}, {report.shards:,} shards, {report.rows:,} rows{age}"
    faults = tuple(Text(fault, "red") for fault in report.faults[:_SHOWN_MAX])
    return View(report.document(), (*faults, Text(shortened(text)), Text(report.manifest_ref, "dim")))


def rollback_view(report: RollbackReport) -> View:
    """Show which snapshot is current."""
    if report.before == report.after:
        text = f"run {report.run_id} is current already"
    else:
        text = f"run {report.run_id} {'is current now' if report.changed else 'would be current'}"
    return View(
        report.document(),
        (Text(f"{report.prefix}: {text}"), Text(f"before: {report.before}"), Text(f"after:  {report.after}")),
    )


def verify_view(report: VerifyReport) -> View:
    """Show the differences, and how much was verified."""
    return View(report.document(), tuple(_verification(report)))


def cleanup_view(report: CleanupReport) -> View:
    """Show what was (or would be) removed, and what stays."""
    return View(report.document(), tuple(_cleanup(report)))


def _snapshot(report: SnapshotReport) -> Iterator[RenderableType]:
    current = "current" if report.is_current else "not current"
    yield Text(shortened(f"{report.prefix}: run {report.run_id}, built {report.created_at}, {current}"))
    yield Text(f"  {report.manifest_ref}", "dim")
    yield Text(
        f"  {report.rows:,} rows, {report.bytes:,} bytes in {len(report.shards):,} of {report.num_dbs:,} shards; key"
        f" {shortened(report.key_col)} ({report.key_encoding}),"
        f" sharded by {shortened(str(report.sharding.get('strategy')))}"
    )
    for name in ("cel_expr", "routing_values"):
        if report.sharding.get(name) is not None:
            yield Text(f"  {name}: {shortened(str(report.sharding[name]))}")
    for name, value in islice(report.custom.items(), _SHOWN_MAX):
        yield Text(shortened(f"  {name}: {value}"))
    if len(report.custom) > _SHOWN_MAX:
        yield Text(f"  and {len(report.custom) - _SHOWN_MAX:,} more; --json names all", style="dim")
    table = columns("shard", "rows", "bytes", "first key", "last key", right=("shard", "rows", "bytes"))
    for shard in report.shards[:_SHOWN_MAX]:
        table.add_row(str(shard.db_id), f"{shard.rows:,}", f"{shard.bytes:,}", _key(shard.min_key), _key(shard.max_key))
    if report.shards:
        yield table
    if len(report.shards) > _SHOWN_MAX:
        yield Text(f"  and {len(report.shards) - _SHOWN_MAX:,} more; --json names all", style="dim")


def _key(key: int | str | None) -> Text:
    return Text("" if key is None else shortened(str(key)))


def _verification(report: VerifyReport) -> Iterator[Text]:
    for fault in report.faults[:_SHOWN_MAX]:
        yield Text(f"shard {fault.db_id}: {fault.what}", "red")
    if len(report.faults) > _SHOWN_MAX:
        yield Text(f"  and {len(report.faults) - _SHOWN_MAX:,} more; --json names all", style="dim")
    keys = "the rule needs other columns than the key" if report.keys is None else f"{report.keys:,} keys"
    if report.unread:
        keys += f"; {report.unread:,} shards are in another database than SQLite, and were not read"
    sound = "sound" if report.is_sound else f"{len(report.faults):,} faults"
    yield Text(f"{report.manifest_ref}: {sound}; verified {report.shards:,} shards, {report.rows:,} rows; {keys}")


def _cleanup(report: CleanupReport) -> Iterator[RenderableType]:
    if report.removals:
        table = columns("kind", "key", "bytes", "since", "why", "done", right=("bytes",))
        for entry in report.removals[:_SHOWN_MAX]:
            end = Text("removed" if entry.removed else entry.error or entry.held or "")
            row = (entry.kind.value, Text(entry.key), f"{entry.bytes:,}", moment(entry.since), Text(entry.why), end)
            table.add_row(*row)
        yield table
    if len(report.removals) > _SHOWN_MAX:
        yield Text(f"  and {len(report.removals) - _SHOWN_MAX:,} more; --json names all", style="dim")
    removals = [removal for removal in report.removals if removal.removed or report.dry_run]
    state = "may go" if report.dry_run else "were removed"
    yield Text(
        f"{report.prefix}: {len(removals):,} objects ({sum(removal.bytes for removal in removals):,} bytes) {state};"
        f" {len(report.kept):,} snapshots stay, {report.young:,} objects are too young"
    )
    for run in report.living:
        yield Text(f"run {run} goes on; nothing of it is touched", "yellow")
    for key in report.unreadable:
        yield Text(
            f"{key} cannot be understood, so its run counts as running: delete it if the run has ended", "yellow"
        )
