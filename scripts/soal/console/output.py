"""What the commands say: one interface, for a person at a console and for a program that reads JSON.

Data goes to stdout. Talk (progress, remarks, problems) goes to stderr, so that stdout can be piped in both forms.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scripts.soal.orphans.views import iceberg_view, orphans_view
from scripts.soal.runs.views import event_line, recovered_table, redriven_table, run_table, writes_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from handler.functions.failure_queue import Redriven
    from handler.outcome.response import Result
    from scripts.bench.fanout import FanoutCost
    from scripts.bench.guard import GuardCost
    from scripts.bench.settle import SettleCost
    from scripts.bench.start import StartCost
    from scripts.image.size import Size
    from scripts.soal.console.problem import Problem
    from scripts.soal.doctor.finding import Finding
    from scripts.soal.invocation.report import Report
    from scripts.soal.local.background import LocalS3
    from scripts.soal.local.inventory import BucketContent
    from scripts.soal.orphans.iceberg import IcebergReport
    from scripts.soal.orphans.report import OrphanReport
    from scripts.soal.recover.recoverer import Recovered
    from scripts.soal.remote.function import Sent
    from scripts.soal.remote.logs import LogLine
    from scripts.soal.runs.ledger import RunView
    from scripts.soal.runs.watching import Event

    Cost = FanoutCost | GuardCost | SettleCost | StartCost

__all__ = ["ConsoleOutput", "JsonOutput", "Output", "output"]

_STYLES: Final = {
    "SUCCESS": "green",
    "committed": "green",
    "ok": "green",
    "UNKNOWN": "bold red",
    "unknown": "bold red",
    "FAILED": "red",
    "fail": "red",
    "TIMED_OUT": "yellow",
    "INCOMPLETE": "yellow",
    "CANCELLED": "yellow",
    "RUNNING": "cyan",
    "in_progress": "cyan",
    "rolling_back": "yellow",
    "rolled_back": "yellow",
    "warn": "yellow",
    "sent": "green",
    "left": "yellow",
    "failed": "red",
}
_TIMINGS: Final = (
    ("script", "script_download_ms"),
    ("Java", "jvm_start_ms"),
    ("session", "session_ms"),
    ("job", "job_ms"),
    ("settle", "settle_ms"),
    ("total", "total_ms"),
    ("left", "remaining_ms"),
)
_PIPE_WIDTH: Final = 160


class Output(Protocol):
    """Where a command puts what it has to say. `talk` is a console on stderr."""

    talk: Console

    def invocation(self, report: Report) -> None: ...
    def sent(self, sent: Sent) -> None: ...
    def log_line(self, line: LogLine) -> None: ...
    def document(self, document: Mapping[str, Any]) -> None: ...
    def local(self, state: LocalS3 | None, contents: Sequence[BucketContent]) -> None: ...
    def findings(self, findings: Sequence[Finding]) -> None: ...
    def figures(self, measured: Cost) -> None: ...
    def runs(self, runs: Sequence[RunView]) -> None: ...
    def run(self, run: RunView) -> None: ...
    def event(self, event: Event) -> None: ...
    def recovered(self, recovered: Sequence[Recovered]) -> None: ...
    def redriven(self, redriven: Sequence[Redriven]) -> None: ...
    def orphans(self, report: OrphanReport) -> None: ...
    def iceberg_orphans(self, report: IcebergReport) -> None: ...
    def size(self, size: Size) -> None: ...
    def remark(self, text: str) -> None: ...
    def problem(self, problem: Problem) -> None: ...


class _Talk:
    def __init__(self) -> None:
        self.talk = Console(stderr=True, highlight=False)

    def remark(self, text: str) -> None:
        self.talk.print(Text(text), soft_wrap=True)

    def problem(self, problem: Problem) -> None:
        self.talk.print(Text.assemble(("soal: ", "bold red"), str(problem)), soft_wrap=True)
        self.talk.print(Text(f"  To do: {problem.todo}"), soft_wrap=True)


class ConsoleOutput(_Talk):
    """For a person. Colours as rich decides: on a terminal, and never with NO_COLOR."""

    def __init__(self) -> None:
        super().__init__()
        self.data = Console(highlight=False)
        if not self.data.is_terminal:
            self.data = Console(highlight=False, width=_PIPE_WIDTH)

    def invocation(self, report: Report) -> None:
        if report.result is not None:
            self._result(report.result)

    def log_line(self, line: LogLine) -> None:
        text = Text.assemble((line.time, "dim"), f" {line.level:<5} " if line.level else " ", line.text)
        self.data.print(text, soft_wrap=True)

    def document(self, document: Mapping[str, Any]) -> None:
        self.data.print_json(json.dumps(document))

    def sent(self, sent: Sent) -> None:
        self.data.print("queued" if sent.request_id is None else f"queued, request {sent.request_id}")
        if sent.run_key is not None:
            self.remark(f"what becomes of it: soal runs show {sent.run_key}")

    def local(self, state: LocalS3 | None, contents: Sequence[BucketContent]) -> None:
        if state is None:
            self.data.print("local S3: not running")
            return
        self.data.print(Text.assemble("local S3: ", (state.endpoint, "bold"), f" (process {state.pid})"))
        table = Table(box=None, header_style="dim")
        for name in ("bucket", "objects", "bytes"):
            table.add_column(name, justify="left" if name == "bucket" else "right")
        for bucket in contents:
            table.add_row(bucket.name, f"{bucket.objects:,}", f"{bucket.bytes:,}")
        self.data.print(table)

    def findings(self, findings: Sequence[Finding]) -> None:
        table = Table(box=None, show_header=False)
        for finding in findings:
            what = Text(finding.detail)
            if finding.remedy:
                what.append(f"\nTo do: {finding.remedy}", style="bold")
            table.add_row(_styled(finding.status), finding.name, what)
        self.data.print(table)

    def figures(self, measured: Cost) -> None:
        table = Table(box=None, show_header=False)
        for name, value in asdict(measured).items():
            table.add_row(name.replace("_", " "), _figure(value))
        self.data.print(table)

    def runs(self, runs: Sequence[RunView]) -> None:
        self.data.print(run_table(runs, _styled) if runs else "no run")

    def run(self, run: RunView) -> None:
        self.data.print(run_table((run,), _styled))
        self.data.print(writes_table(run.writes, _styled) if run.writes else "no guarded write")
        if run.entry_point is not None:
            self.data.print(Text(f"script {run.entry_point}; result at {run.result_uri}", style="dim"), soft_wrap=True)

    def event(self, event: Event) -> None:
        self.data.print(event_line(event, _styled), soft_wrap=True)

    def recovered(self, recovered: Sequence[Recovered]) -> None:
        self.data.print(recovered_table(recovered, _styled) if recovered else "no write to recover")
        for one in recovered:
            for change in one.changes:
                self.data.print(Text(f"  {change}", style="dim"), soft_wrap=True)
            if one.changes_more:
                self.data.print(Text(f"  and {one.changes_more:,} more", style="dim"))

    def redriven(self, redriven: Sequence[Redriven]) -> None:
        self.data.print(redriven_table(redriven, _styled) if redriven else "no message")

    def orphans(self, report: OrphanReport) -> None:
        self.data.print(orphans_view(report))

    def iceberg_orphans(self, report: IcebergReport) -> None:
        self.data.print(iceberg_view(report))

    def size(self, size: Size) -> None:
        table = Table(box=None, header_style="dim")
        table.add_column("layer, part", overflow="ellipsis", no_wrap=True)
        table.add_column("MB", justify="right")
        for layer in reversed(size.layers):
            table.add_row(layer.step, f"{layer.bytes / 1e6:,.1f}")
        table.add_row("above the base", f"{size.above_base_bytes / 1e6:,.1f}", style="bold")
        for part in size.parts:
            table.add_row(part.name, f"{part.bytes / 1e6:,.1f}")
        self.data.print(table)

    def _result(self, result: Result) -> None:
        self.data.print(Text.assemble(_styled(result.state.value), "  ", result.state_details), soft_wrap=True)
        if result.writes:
            self._writes(result)
        timings = [(name, getattr(result.timings, field)) for name, field in _TIMINGS]
        parts = [f"{name} {value / 1000:.1f} s" for name, value in timings if value is not None]
        peak = (
            "" if result.memory.peak_mb is None else f"; memory {result.memory.peak_mb} of {result.memory.limit_mb} MB"
        )
        self.data.print(Text(", ".join(parts) + peak, style="dim"), soft_wrap=True)
        for warning in result.warnings:
            self.data.print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)
        if result.state != "SUCCESS" and result.log_tail:
            self.data.print(Text("the last lines of the job:", style="dim"))
            for line in result.log_tail:
                self.data.print(Text(f"  {line}", style="dim"), soft_wrap=True)
        if result.result_uri is not None:
            self.data.print(Text(f"kept at {result.result_uri}", style="dim"), soft_wrap=True)

    def _writes(self, result: Result) -> None:
        table = Table(box=None, header_style="dim")
        for name in ("write", "step", "verdict", "version", "rows", "bytes", "reason"):
            table.add_column(name, justify="right" if name in ("version", "rows", "bytes") else "left", overflow="fold")
        for write in result.writes:
            reason = write.undo_refused or write.reason or ""
            numbers = ["" if number is None else f"{number:,}" for number in (write.version, write.rows, write.bytes)]
            table.add_row(write.table, write.step or "", _styled(write.status), *numbers, reason)
        self.data.print(table)


class JsonOutput(_Talk):
    """For a program: one JSON value on stdout."""

    def invocation(self, report: Report) -> None:
        if report.result is not None:
            _dump(report.result.document())

    def document(self, document: Mapping[str, Any]) -> None:
        _dump(document)

    def sent(self, sent: Sent) -> None:
        _dump(asdict(sent))

    def local(self, state: LocalS3 | None, contents: Sequence[BucketContent]) -> None:
        if state is None:
            _dump({"running": False})
        else:
            _dump({"running": True, **state.model_dump(), "buckets": [asdict(bucket) for bucket in contents]})

    def findings(self, findings: Sequence[Finding]) -> None:
        _dump([asdict(finding) for finding in findings])

    def figures(self, measured: Cost) -> None:
        _dump(asdict(measured))

    def runs(self, runs: Sequence[RunView]) -> None:
        _dump([asdict(run) for run in runs])

    def run(self, run: RunView) -> None:
        _dump(asdict(run))

    def event(self, event: Event) -> None:
        _dump_line(asdict(event))

    def log_line(self, line: LogLine) -> None:
        _dump_line(asdict(line))

    def recovered(self, recovered: Sequence[Recovered]) -> None:
        _dump([asdict(one) for one in recovered])

    def redriven(self, redriven: Sequence[Redriven]) -> None:
        _dump([asdict(one) for one in redriven])

    def orphans(self, report: OrphanReport) -> None:
        _dump(report.document())

    def iceberg_orphans(self, report: IcebergReport) -> None:
        _dump(report.document())

    def size(self, size: Size) -> None:
        _dump({**asdict(size), "above_base_bytes": size.above_base_bytes})


def output(*, is_json: bool) -> Output:
    """Choose the form."""
    return JsonOutput() if is_json else ConsoleOutput()


def _figure(value: float | str | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _styled(word: str) -> Text:
    return Text(word, style=_STYLES.get(word, ""))


def _dump_line(value: Any) -> None:  # noqa: ANN401 - any JSON value
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _dump(value: Any) -> None:  # noqa: ANN401 - any JSON value
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
