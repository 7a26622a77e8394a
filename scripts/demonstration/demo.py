"""`scripts/demo`: a guarded job succeeds, the next one reaches its deadline, its retry lands once.

Everything is real: the handler under Lambda's runtime interface emulator, Spark, SafeWriter, for `--format iceberg` a
REST catalog; only S3 is moto's. Each claim is checked against the table as deltalake or pyiceberg and the plain files
show it; a false one means exit code 1.
"""

from __future__ import annotations

import argparse
import csv
import functools
import io
import json
import math
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from safewriter.parsing import parsed
from scripts.accommodations import ROWS, csv_bytes
from scripts.demonstration.claims import Claims
from scripts.emulator import EmbeddedS3
from scripts.soal.console.problem import EXIT_FAILED, EXIT_OK, Problem
from scripts.soal.console.progress import JobProgress
from scripts.soal.local.catalog import WAREHOUSE, rest_properties, spark_settings
from scripts.soal.local.function import Function, function_variables
from scripts.soal.local.home import SHARED_DATA, Home
from scripts.soal.local.sample import BUCKETS, CHECKPOINTS, DATA, LAKE, SCRIPTS, SOURCE_KEY, put_sample
from scripts.soal.tables.delta import TableView, view
from scripts.soal.target import local_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from handler.outcome.result import Result, WriteResult

__all__ = ["main"]

_DELTA_PATH: Final = "accommodations"
_CATALOG: Final = "lake"
_SLOW: Final = "accommodations_slow"
_PAUSE_S: Final = 600
_LONG_S: Final = 300
_SPARE_S: Final = 3
_MEMORY_MB: Final = 3008


@dataclass(frozen=True, slots=True)
class _Format:
    """A table format in the demonstration: its table, jobs' name for it, the function's settings, and the reader."""

    name: str
    table: str
    reader: str
    look: Callable[[], TableView]
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Demo:
    """The demonstration: an S3, a function, a table, and the claims."""

    console: Console
    s3: EmbeddedS3
    home: Home
    claims: Claims
    format: _Format

    def run(self, job: str, token: str, *more: str, timeout_s: int = _LONG_S, pause_s: int = 0) -> Result:
        """Invoke a function that runs one of the sample jobs, with `more` arguments; show its result."""
        target = local_target(self.s3.endpoint)
        variables = function_variables(target, CHECKPOINTS, self._variables(pause_s), self.home)
        event = {
            "entryPoint": f"s3://{SCRIPTS}/jobs/{job}.py",
            "clientToken": token,
            "entryPointArguments": ["--source", f"s3a://{DATA}/{SOURCE_KEY}", "--table", self.format.table, *more],
        }
        with JobProgress(self.console, f"{job}, clientToken {token}") as progress:
            report = Function(variables, timeout_s, _MEMORY_MB, self.home, progress.line).invoke(event)
        if report.result is None:
            raise Problem(str(report.problem), todo="check the set-up with: soal doctor", exit_code=EXIT_FAILED)
        self._show(report.result)
        return report.result

    def _variables(self, pause_s: int) -> dict[str, str]:
        return {"PAUSE_S": str(pause_s), "SOAL_CONF": json.dumps(dict(self.format.conf))}

    def table(self) -> TableView:
        """Read the table from outside."""
        seen = self.format.look()
        read = f"(read by {self.format.reader})"
        self._line("table", f"version {seen.version}, {seen.rows:,} rows, {seen.files} files {read}")
        return seen

    def checkpoint(self, write: WriteResult) -> dict[str, Any]:
        """Read the checkpoint document of a write."""
        bucket, _, key = write.checkpoint.removeprefix("s3://").partition("/")
        document: dict[str, Any] = parsed(self.s3.observer().get_object(Bucket=bucket, Key=key)["Body"].read())
        self._line("checkpoint", f"{document['status']}, epoch {document['epoch']}: {write.checkpoint}")
        return document

    def data_files_sent(self, since: int) -> int:
        """Count the data files that S3 has received since the trace had that length."""
        return sum(
            exchange.operation in ("PutObject", "CompleteMultipartUpload")
            and exchange.key_class == "data"
            and exchange.applied == 200  # noqa: PLR2004 - HTTP's own number
            for exchange in self.s3.trace()[since:]
        )

    def _show(self, result: Result) -> None:
        style = "green" if result.state == "SUCCESS" else "yellow"
        timings = result.timings
        spent = f"{timings.total_ms / 1000:.1f} s, {timings.remaining_ms / 1000:.1f} s before the timeout"
        self._line(
            "result", Text.assemble((result.state.value, f"bold {style}"), f", attempt {result.attempt}, {spent}")
        )
        for write in result.writes:
            rows = "" if write.rows is None else f", {write.rows:,} rows as {self._commit(write)}"
            self._line("write", f"{write.status}{rows}{f' ({write.reason})' if write.reason else ''}")

    @staticmethod
    def _commit(write: WriteResult) -> str:
        return f"{'version' if write.format == 'delta' else 'snapshot'} {write.version}"

    def _line(self, name: str, value: str | Text) -> None:
        self.console.print(Text.assemble((f"  {name:<11}", "dim"), value), soft_wrap=True)


def main() -> int:
    """Play the three acts; return 0 if every claim was true."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the claims as JSON on stdout, the rest on stderr")
    parser.add_argument("--format", choices=["delta", "iceberg"], default="delta", help="the table's format")
    asked = parser.parse_args()
    as_json = asked.json
    console = Console(stderr=as_json, highlight=False)
    claims = Claims(console)
    started = time.monotonic()
    try:
        with EmbeddedS3(buckets=BUCKETS, unlistable=(CHECKPOINTS,)) as s3, _opened(asked.format, s3) as format_:
            _play(_Demo(console, s3, Home.of(), claims, format_))
        claims.check("no process is left", holds=not psutil.Process().children(recursive=True))
    except Problem as problem:
        claims.check(f"the job could be run: {problem} (to do: {problem.todo})", holds=False)
    if as_json:
        json.dump([asdict(claim) for claim in claims.made], sys.stdout, indent=2)
        sys.stdout.write("\n")
    true = sum(claim.holds for claim in claims.made)
    console.print(f"\n{true} of {len(claims.made)} claims are true. {time.monotonic() - started:.0f} s.")
    return EXIT_OK if claims.all_hold else EXIT_FAILED


@contextmanager
def _opened(name: str, s3: EmbeddedS3) -> Iterator[_Format]:
    if name == "delta":
        aws = local_target(s3.endpoint).aws
        look = functools.partial(view, s3.observer(), LAKE, _DELTA_PATH, aws)
        yield _Format("delta", f"s3a://{LAKE}/{_DELTA_PATH}", "deltalake", look)
        return
    from scripts.emulator.rest_catalog import RestCatalog
    from scripts.soal.tables import iceberg as iceberg_table

    with (
        tempfile.TemporaryDirectory(prefix="soal-demo-") as folder,
        RestCatalog(s3, Path(folder), WAREHOUSE) as catalog,
    ):
        table = f"{_CATALOG}.db.accommodations"
        own = rest_properties(catalog.uri)
        look = functools.partial(iceberg_table.view, s3.observer(), own, table)
        yield _Format("iceberg", table, "pyiceberg", look, spark_settings(_CATALOG, own))


def _play(demo: _Demo) -> None:
    source, origin = _source()
    put_sample(demo.s3.observer(), source)
    rows = sum(1 for _ in csv.reader(io.StringIO(source.decode(), newline=""), delimiter=";")) - 1
    demo.console.print(Text(f"S3 at {demo.s3.endpoint} (in this process); {rows:,} rows of {origin}"), soft_wrap=True)
    first, after_first = _succeeds(demo, rows)
    after_second = _reaches_its_deadline(demo, first, after_first)
    after_third = _is_retried(demo, rows, after_second)
    demo.console.print()
    demo.console.print(_summary((after_first, after_second, after_third)))


def _succeeds(demo: _Demo, rows: int) -> tuple[Result, TableView]:
    title = f"1  A job writes a CSV file to a new {demo.format.name.capitalize()} table, guarded"
    demo.console.print(Rule(title, align="left"))
    result = demo.run(f"accommodations_{demo.format.name}", "monday")
    seen = demo.table()
    document = demo.checkpoint(result.writes[0]) if result.writes else {}
    demo.claims.check("the job succeeded", holds=result.state == "SUCCESS")
    demo.claims.check(f"the table holds the {rows:,} rows of the file", holds=seen.rows == rows)
    demo.claims.check("the checkpoint says committed", holds=document.get("status") == "committed")
    demo.claims.check("every data file belongs to a version of the table", holds=not seen.orphans)
    return result, seen


def _reaches_its_deadline(demo: _Demo, first: Result, before: TableView) -> TableView:
    # A quarter of a short timeout is kept to settle in; the first part of the data must have been written before that.
    timeout_s = math.ceil((first.timings.total_ms / 1000 + _SPARE_S) * 4 / 3)
    demo.console.print(
        Rule(f"2  The next batch: half of its data comes late, the timeout is {timeout_s} s", align="left")
    )
    length = len(demo.s3.trace())
    result = demo.run(_SLOW, "tuesday", *_named(demo), timeout_s=timeout_s, pause_s=_PAUSE_S)
    seen = demo.table()
    sent = demo.data_files_sent(length)
    statuses = [write.status for write in result.writes]
    demo.claims.check("the function answered before Lambda killed it", holds=result.timings.remaining_ms > 0)
    demo.claims.check("the job timed out, and its write was rolled back", holds=statuses == ["rolled_back"])
    demo.claims.check("the table is as it was", holds=(seen.version, seen.rows) == (before.version, before.rows))
    demo.claims.check(
        f"of the {sent} data file(s) that had reached S3, no version has one, and none is left", holds=not seen.orphans
    )
    return seen


def _is_retried(demo: _Demo, rows: int, before: TableView) -> TableView:
    demo.console.print(Rule("3  The retry: the same job with the same clientToken", align="left"))
    result = demo.run(_SLOW, "tuesday", *_named(demo))
    seen = demo.table()
    document = demo.checkpoint(result.writes[0]) if result.writes else {}
    demo.claims.check("the retry succeeded, as attempt 2", holds=(result.state, result.attempt) == ("SUCCESS", 2))
    demo.claims.check(
        f"the batch is in the table once: {before.rows:,} + {rows:,} rows", holds=_grew(before, seen, rows)
    )
    demo.claims.check("the checkpoint says committed, in epoch 2", holds=_verdict(document) == ("committed", 2))
    demo.claims.check(
        "every data file of the retry belongs to a version of the table", holds=seen.orphans == before.orphans
    )
    return seen


def _named(demo: _Demo) -> tuple[str, str]:
    return "--format", demo.format.name


def _grew(before: TableView, after: TableView, rows: int) -> bool:
    return after.rows == before.rows + rows and after.version == before.version + 1


def _verdict(document: dict[str, Any]) -> tuple[object, object]:
    return document.get("status"), document.get("epoch")


def _summary(views: tuple[TableView, TableView, TableView]) -> Table:
    table = Table(box=None, header_style="dim")
    for name in ("", "version", "rows", "files", "orphans"):
        table.add_column(name, justify="right" if name else "left")
    for when, seen in zip(("after the first batch", "after the deadline", "after the retry"), views, strict=True):
        table.add_row(when, str(seen.version), f"{seen.rows:,}", str(seen.files), str(len(seen.orphans)))
    return table


def _source() -> tuple[bytes, str]:
    """Return the real data if this machine has it, else made-up rows."""
    if SHARED_DATA.is_file():
        return SHARED_DATA.read_bytes(), f"../shared/data/{SHARED_DATA.name}"
    return csv_bytes(ROWS), "generated accommodations"


if __name__ == "__main__":
    sys.exit(main())
