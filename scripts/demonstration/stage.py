"""The stage of the demonstrations: an S3, a function, a table, and claims that are checked before they are printed."""

from __future__ import annotations

import functools
import json
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from safewriter.parsing import parsed
from scripts.local.function import Function, function_variables
from scripts.tables.delta import TableView, view
from soal.console.problem import Failure
from soal.console.progress import JobProgress
from soal.local.names import CHECKPOINTS, DATA, LAKE, SCRIPTS, SOURCE_KEY, WAREHOUSE, rest_properties, spark_settings
from soal.remote.execution import Execution
from soal.target import local_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.console import Console

    from handler.outcome.result import Result, WriteResult
    from soal.home import Home
    from soal.invocation.report import Report
    from soal.testing.s3 import EmbeddedS3
    from soal.testing.s3.backend import Backend


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, and whether it is true."""

    text: str
    holds: bool


@dataclass(slots=True)
class Claims:
    """All claims so far, false ones included."""

    console: Console
    entries: list[Claim] = field(default_factory=list)

    def check(self, text: str, *, holds: bool) -> None:
        """Print a claim, marked as true or false, and record it."""
        claim = Claim(text, holds)
        self.entries.append(claim)
        mark, style = ("✓", "green") if claim.holds else ("✗ NOT TRUE:", "bold red")
        self.console.print(Text.assemble(("  " + mark, style), " ", text), soft_wrap=True)

    @property
    def all_hold(self) -> bool:
        """Whether there were claims, and all of them are true."""
        return bool(self.entries) and all(claim.holds for claim in self.entries)


_DELTA_PATH: Final = "accommodations"
_CATALOG: Final = "lake"
_LONG_S: Final = 300
_MEMORY_MB: Final = 3008
_POLL_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Format:
    """A table format: its table, the jobs' name for that, the function's settings, and the reader."""

    name: str
    table: str
    reader: str
    look: Callable[[], TableView]
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Demo:
    """The demonstration: an S3, a function, a table, and the claims. `checks_tokens`: the S3 knows its own alone."""

    console: Console
    s3: EmbeddedS3
    home: Home
    claims: Claims
    format: Format
    checks_tokens: bool = False

    def run(self, job: str, token: str, *more: str, timeout_s: int = _LONG_S, pause_s: int = 0) -> Result:
        """Invoke a function that runs a sample job with `more` arguments; show and return its result."""
        event = self._event(job, token, more)
        with JobProgress(self.console, f"{job}, clientToken {token}") as progress:
            return self._show_report(self._function(timeout_s, pause_s, progress.line).invoke(event))

    def execute(self, job: str, token: str, *more: str, timeout_s: int, pause_s: int) -> Result:
        """Run a sample job as a durable execution; show and return its result."""
        event = json.dumps(self._event(job, token, more))
        with (
            JobProgress(self.console, f"{job}, clientToken {token}") as progress,
            self._function(timeout_s, pause_s, lambda _line: None).durable() as service,
        ):
            execution = Execution(service.start(event), service.client(), poll_s=_POLL_S)
            self._line("execution", execution.arn)
            return self._show_report(execution.report(progress.says))

    def _event(self, job: str, token: str, more: tuple[str, ...]) -> dict[str, Any]:
        return {
            "entryPoint": f"s3://{SCRIPTS}/jobs/{job}.py",
            "clientToken": token,
            "entryPointArguments": ["--source", f"s3a://{DATA}/{SOURCE_KEY}", "--table", self.format.table, *more],
        }

    def _function(self, timeout_s: int, pause_s: int, on_line: Callable[[str], None]) -> Function:
        # Only moto takes the made-up session token of a local function.
        target = replace(local_target(self.s3.endpoint), is_local=not self.checks_tokens)
        variables = function_variables(target, CHECKPOINTS, self._variables(pause_s), self.home)
        return Function(variables, timeout_s, _MEMORY_MB, self.home, on_line)

    def _show_report(self, report: Report) -> Result:
        if report.result is None:
            raise Failure(str(report.problem), todo="check the set-up with: soal doctor")
        self._show(report.result)
        return report.result

    def _variables(self, pause_s: int) -> dict[str, str]:
        pause = {"PAUSE_S": str(pause_s), "HOLD": f"write {pause_s}"}
        return {**pause, "SOAL_CONF": json.dumps(dict(self.format.conf))}

    def table(self) -> TableView:
        """Read the table without Spark."""
        view = self.format.look()
        reader = f"(read by {self.format.reader})"
        self._line("table", f"version {view.version}, {view.rows:,} rows, {view.files} files {reader}")
        return view

    def checkpoint(self, write: WriteResult) -> dict[str, Any]:
        """Read the checkpoint document of a write."""
        bucket, _, key = write.checkpoint.removeprefix("s3://").partition("/")
        document: dict[str, Any] = parsed(self.s3.observer().get_object(Bucket=bucket, Key=key)["Body"].read())
        self._line("checkpoint", f"{document['status']}, epoch {document['epoch']}: {write.checkpoint}")
        return document

    def data_files_sent(self, since: int) -> int:
        """Return the number of data files that S3 has received since the trace had `since` entries."""
        return sum(
            exchange.operation in ("PutObject", "CompleteMultipartUpload")
            and exchange.key_class == "data"
            and exchange.applied == 200  # noqa: PLR2004 - HTTP's own number
            for exchange in self.s3.trace()[since:]
        )

    def _show(self, result: Result) -> None:
        style = "green" if result.state == "SUCCESS" else "yellow"
        timings = result.timings
        times = f"{timings.total_ms / 1000:.1f} s, {timings.remaining_ms / 1000:.1f} s before the timeout"
        self._line(
            "result", Text.assemble((result.state.value, f"bold {style}"), f", attempt {result.attempt}, {times}")
        )
        for item in result.attempts:
            self._line(
                "attempt", f"{item.number}: {item.state.value}, {item.committed} commits, {item.total_ms / 1000:.1f} s"
            )
        for write in result.writes:
            rows = "" if write.rows is None else f", {write.rows:,} rows as {self._commit(write)}"
            self._line("write", f"{write.status}{rows}{f' ({write.reason})' if write.reason else ''}")

    @staticmethod
    def _commit(write: WriteResult) -> str:
        return f"{'version' if write.format == 'delta' else 'snapshot'} {write.version}"

    def _line(self, name: str, value: str | Text) -> None:
        self.console.print(Text.assemble((f"  {name:<11}", "dim"), value), soft_wrap=True)


@contextmanager
def open_format(name: str, s3: EmbeddedS3, backend: Backend) -> Iterator[Format]:
    """Yield the format called `name`; for Iceberg with the catalog of the backend, or else with one that it starts."""
    if name == "delta":
        aws = local_target(s3.endpoint).aws
        look = functools.partial(view, s3.observer(), LAKE, _DELTA_PATH, aws)
        yield Format("delta", f"s3a://{LAKE}/{_DELTA_PATH}", "deltalake", look)
        return
    from scripts.emulator.rest_catalog import RestCatalog
    from scripts.emulator.seaweedfs import SeaweedFS
    from scripts.tables import iceberg as iceberg_table

    with ExitStack() as stack:
        if isinstance(backend, SeaweedFS):
            properties = backend.catalog(s3, "soal-warehouse")
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-demo-"))
            properties = rest_properties(stack.enter_context(RestCatalog(s3, Path(folder), WAREHOUSE)).uri)
        table = f"{_CATALOG}.db.accommodations"
        look = functools.partial(iceberg_table.view, s3.observer(), properties, table)
        yield Format("iceberg", table, "pyiceberg", look, spark_settings(_CATALOG, properties))
