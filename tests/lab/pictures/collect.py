"""The real runs: the handler under Lambda's runtime interface emulator, Spark, Delta; only S3 is moto's.

One guarded append is traced. Then the same append, guarded and not, is killed at given requests and retried: every
process of the function gets SIGKILL, as when Lambda ends a sandbox. Each kill has its own copy of the same table.
"""

from __future__ import annotations

import contextlib
import functools
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

import psutil

from safewriter.parsing import parsed
from scripts.accommodations import ROWS
from scripts.emulator.rie import LambdaEmulator
from scripts.local.function import function_variables
from scripts.local.sample import put_sample
from scripts.provision.place import ROOT
from scripts.tables.delta import view
from soal.console.problem import EXIT_OK
from soal.console.progress import JobProgress
from soal.home import Home
from soal.invocation.report import report_of
from soal.local.names import BUCKETS, CHECKPOINTS, DATA, LAKE, SCRIPTS, SOURCE_KEY
from soal.target import local_target
from soal.testing.s3 import EmbeddedS3, Kill, Match, Rule
from tests.lab.pictures.facts import Facts, KilledJob, Moment, SeenTable, TracedRequest, TracedWrite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from soal.target import Target
    from soal.testing.s3 import Exchange

__all__ = ["collect"]

_GUARDED: Final = "accommodations_delta"
_UNGUARDED: Final = "accommodations_delta_unguarded"
_TIMEOUT_S: Final = 300
_MEMORY_MB: Final = 3008
# The retry starts after the killed attempt's lease (20 s) has expired; its deadline is far away.
_RETRY_LATER_S: Final = 30.0
_CLAIM: Final = Match(operations={"PutObject"}, key_class="checkpoint")
_COMMIT: Final = Match(operations={"PutObject"}, key_class="delta_log/commit")
_EMULATOR: Final = "rie"
_WHAT_RUNS: Final = (
    "handler",
    "safewriter",
    "image",
    "requirements",
    "scripts/emulator",
    "scripts/jobs",
    "soal/testing",
)
_PACKAGES: Final = ("soal", "pyspark", "delta-spark", "deltalake", "moto")


def collect(console: Console) -> Facts:
    """Run everything, which takes minutes. Raises RuntimeError if a run that should succeed does not."""
    with (
        tempfile.TemporaryDirectory(prefix="soal-pictures-") as folder,  # a killed function leaves its sandbox here
        EmbeddedS3(buckets=BUCKETS, unlistable=(CHECKPOINTS,)) as s3,
    ):
        put_sample(s3.observer())
        runs = _Runs(s3, Home.of(), folder, console)
        runs.succeed(_GUARDED, "monday", "monday")
        return Facts(
            commit=_commit(),
            versions={name: version(name) for name in _PACKAGES},
            batch_rows=ROWS,
            write=runs.traced("traced"),
            kills=(
                runs.killed("written", is_guarded=False),
                runs.killed("landed", is_guarded=False),
                runs.killed("marked", is_guarded=True),
                runs.killed("written", is_guarded=True),
                runs.killed("landed", is_guarded=True),
                runs.killed("settled", is_guarded=True),
            ),
        )


@dataclass(slots=True)
class _Runs:
    """An S3 with the table `monday`, and the function that writes to copies of it."""

    s3: EmbeddedS3
    home: Home
    folder: str
    console: Console

    def traced(self, table: str) -> TracedWrite:
        """Append once; return the requests of the write, from the PUT of its marker to its DELETE."""
        self._copy(table)
        since = len(self.s3.trace())
        self.succeed(_GUARDED, "tuesday", table)
        exchanges = sorted(self.s3.trace()[since:], key=lambda exchange: exchange.started_ns)
        marker = next(exchange for exchange in exchanges if exchange.key_class == "marker")
        write_key = f"/{marker.key.split('/')[-2]}"
        requests = [
            _request(exchange, marker.started_ns)
            for exchange in exchanges
            if (exchange.bucket == LAKE or (exchange.bucket == CHECKPOINTS and write_key in exchange.key))
            and exchange.status != HTTPStatus.PRECONDITION_FAILED  # two PUTs that ask a server other than AWS's own
        ]
        # The handler asks for the verdict once more, after the write.
        while requests[-1].operation != "DeleteObject":
            requests.pop()
        return TracedWrite(tuple(requests), self._state(table).rows)

    def killed(self, moment: Moment, *, is_guarded: bool) -> KilledJob:
        """Kill the append at that moment, and retry it."""
        job, name = (_GUARDED, "guarded") if is_guarded else (_UNGUARDED, "unguarded")
        table = f"{name}-{moment}"
        self._copy(table)
        before = self._state(table)
        with self._function(f"{job}, to be killed: {moment}") as emulator:
            rule = self.s3.wire.add(_rule(moment, functools.partial(_end, emulator)))
            answer = report_of(emulator.invoke(_event(job, "tuesday", table)), _TIMEOUT_S)
        self.s3.wire.clear_rules()
        if not rule.hits or answer.result is not None:
            raise RuntimeError(f"{table}: the job was to be killed, and was not: {answer}")
        killed = self._state(table)
        self.s3.wire.clock_ahead_s = _RETRY_LATER_S
        retry = self.succeed(job, "tuesday", table)
        self.s3.wire.clock_ahead_s = 0.0
        return KilledJob(is_guarded, moment, before, killed, self._state(table), retry)

    def succeed(self, job: str, day: str, table: str) -> str:
        """Run a job to its end; return the state in its answer."""
        with self._function(f"{job}, {table}") as emulator:
            answer = report_of(emulator.invoke(_event(job, day, table)), _TIMEOUT_S)
        if answer.result is None or answer.exit_code != EXIT_OK:
            raise RuntimeError(f"{job} on {table}: {answer}")
        return answer.result.state.value

    @contextlib.contextmanager
    def _function(self, what: str) -> Iterator[LambdaEmulator]:
        variables = function_variables(self._target, CHECKPOINTS, {"TMPDIR": self.folder}, self.home)
        with (
            JobProgress(self.console, what) as progress,
            LambdaEmulator(
                variables,
                timeout_s=_TIMEOUT_S,
                memory_mb=_MEMORY_MB,
                binary=self.home.rie,
                on_line=progress.line,
            ) as emulator,
        ):
            yield emulator

    def _copy(self, table: str) -> None:
        observer = self.s3.observer()
        for key in self.s3.keys(LAKE, "monday/"):
            source = f"{LAKE}/{key}"
            observer.copy_object(Bucket=LAKE, Key=f"{table}/{key.removeprefix('monday/')}", CopySource=source)

    def _state(self, table: str) -> SeenTable:
        seen = view(self.s3.observer(), LAKE, table, self._target.aws)
        markers, documents = (self._about(table, prefix) for prefix in ("open/", "checkpoints/"))
        document = next(map(parsed, documents), None) or {}
        return SeenTable(
            seen.rows, seen.files, len(seen.orphans), len(markers), document.get("status"), document.get("epoch")
        )

    def _about(self, table: str, prefix: str) -> tuple[bytes, ...]:
        """Return the objects under a prefix of the checkpoint bucket that name the table."""
        observer = self.s3.observer()
        bodies = (
            observer.get_object(Bucket=CHECKPOINTS, Key=key)["Body"].read() for key in self.s3.keys(CHECKPOINTS, prefix)
        )
        return tuple(body for body in bodies if f'/{table}"'.encode() in body)

    @property
    def _target(self) -> Target:
        return local_target(self.s3.endpoint)


def _event(job: str, day: str, table: str) -> dict[str, object]:
    return {
        "entryPoint": f"s3://{SCRIPTS}/jobs/{job}.py",
        "clientToken": f"{day}-{table}",
        "entryPointArguments": ["--source", f"s3a://{DATA}/{SOURCE_KEY}", "--table", f"s3a://{LAKE}/{table}"],
    }


def _rule(moment: Moment, end: Callable[[], None]) -> Rule:
    match moment:
        case "marked":
            return Rule(_CLAIM, Kill("before", end))
        case "written":
            return Rule(_COMMIT, Kill("before", end))
        case "landed":
            return Rule(_COMMIT, Kill("after", end))
        case "settled":
            return Rule(_CLAIM, Kill("after", end), nth=2)


def _end(emulator: LambdaEmulator) -> None:
    """Kill the function. All its processes are stopped first, so that none can react to the death of another."""
    # The second pass finds processes that were started before the first had stopped all; a stopped one starts nothing.
    for number in (signal.SIGSTOP, signal.SIGSTOP, signal.SIGKILL):
        for process in emulator.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name() != _EMULATOR:
                    process.send_signal(number)


def _request(exchange: Exchange, start_ns: int) -> TracedRequest:
    return TracedRequest(
        at_ms=round((exchange.started_ns - start_ns) / 1e6),
        operation=exchange.operation,
        place="table" if exchange.bucket == LAKE else "checkpoints",
        key_class=exchange.key_class,
        key=exchange.key,
        condition=exchange.condition,
        status=exchange.status,
        body_bytes=exchange.body_bytes,
    )


def _commit() -> str:
    """Return the last commit that changed any of the code that runs here."""
    command = ["git", "log", "-1", "--format=%H", "--", *_WHAT_RUNS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
