"""Run a script as a job: a process of its own, which may have a deadline, or be killed at a request.

No handler supervises it: SafeWriter alone guards it, as in any Spark. What a killed job leaves open, its retry settles.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from safewriter.objects.s3 import S3ObjectStore
from safewriter.record.checkpoints import Checkpoints
from soal.testing.s3.rules import Kill, Match, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from soal.testing.s3.embedded import EmbeddedS3

__all__ = ["CHECKPOINTS", "LAKE", "JobRun", "Jobs", "KillAt", "Write"]

LAKE: Final = "lake"
"""The bucket of the tables."""
CHECKPOINTS: Final = "checkpoints"
_DOCUMENTS: Final = "checkpoints/"
_OURS: Final = ("AWS_", "SW_", "SOAL_", "SPARK_", "PYSPARK_")
_DELTA_COMMIT: Final = "delta_log/commit"
_DEADLINE: Final = "SOAL_DEADLINE_EPOCH_MS"

KillAt = Literal["before commit", "after commit"] | int
"""Just before or after the job's first commit to a Delta table reaches S3; or before its request of this number, from
1, that changes an object of the lake.
"""


@dataclass(frozen=True, slots=True)
class Write:
    """A guarded write, as its document has it: committed, rolled_back, unknown, or still open."""

    table: str
    step: str | None
    status: str
    rows: int | None


@dataclass(frozen=True, slots=True)
class JobRun:
    """How a job ended. `exit_code` is minus the signal's number for a killed one; `output` is stdout and stderr;
    `writes` are those of its run key so far, also of earlier attempts.
    """

    exit_code: int
    output: str
    run_key: str
    writes: tuple[Write, ...]


class Jobs:
    """Runs scripts on an S3. `settings` are those of their Spark sessions."""

    def __init__(self, s3: EmbeddedS3, settings: Mapping[str, str], folder: Path) -> None:
        self._s3 = s3
        self._conf = folder / "conf"
        self._conf.mkdir()
        lines = (f"{key} {value}\n" for key, value in settings.items())
        (self._conf / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")

    def __call__(
        self,
        script: str | os.PathLike[str],
        *arguments: str | os.PathLike[str],
        run_key: str | None = None,
        deadline_s: float | None = None,
        kill_at: KillAt | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 300,
    ) -> JobRun:
        """Run a script to its end. The same `run_key` again is a retry; without one each run has its own.

        `deadline_s`: how long the platform gives the job, as SafeWriter knows it. `env`: more variables. Raises
        `TimeoutError` after `timeout_s`, and AssertionError if the job ended before the request at which it should
        have been killed.
        """
        key = run_key or uuid.uuid4().hex
        process = subprocess.Popen(
            [sys.executable, os.fspath(script), *(os.fspath(argument) for argument in arguments)],
            env=self._variables(key, deadline_s) | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with self._killed(process, kill_at) as rule:
            try:
                output, _ = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                raise TimeoutError(f"{script} has not ended after {timeout_s} s") from None
            finally:
                _end(process)  # and the JVM, which may outlive Python
        told = output.decode(errors="replace")
        if rule is not None and not rule.hits:
            raise AssertionError(f"{script} ended with {process.returncode} before the kill at {kill_at!r}:\n{told}")
        return JobRun(process.returncode, told, key, self.writes(key))

    def writes(self, run_key: str) -> tuple[Write, ...]:
        """Return the guarded writes of a run, by their documents."""
        documents = Checkpoints(S3ObjectStore(self._s3.observer(), CHECKPOINTS))
        names = (key.removeprefix(_DOCUMENTS).removesuffix(".json") for key in self._s3.keys(CHECKPOINTS, _DOCUMENTS))
        found = [stored.document for name in names if (stored := documents.read(name)) is not None]
        return tuple(
            Write(document.table, document.step, document.status.value, document.attempt.rows)
            for document in sorted(found, key=lambda document: document.attempt.started_ms)
            if document.run_key == run_key
        )

    def _variables(self, run_key: str, deadline_s: float | None) -> dict[str, str]:
        """Return the job's variables: this process's own, but no other credentials, settings or Spark."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        deadline = {} if deadline_s is None else {_DEADLINE: str(round((time.time() + deadline_s) * 1000))}
        own = {"SW_CHECKPOINT_BUCKET": CHECKPOINTS, "SOAL_RUN_KEY": run_key, **deadline}
        return {
            **clean,
            **self._s3.environment(),
            **own,
            "SPARK_CONF_DIR": str(self._conf),
            "PYSPARK_PYTHON": sys.executable,
        }

    @contextmanager
    def _killed(self, process: subprocess.Popen[bytes], kill_at: KillAt | None) -> Iterator[Rule | None]:
        """Kill a process at a request; it sends its first one long after this, since it has to start Java."""
        if kill_at is None:
            yield None
            return
        match = Match(bucket=LAKE, is_mutating=True)
        if not isinstance(kill_at, int):
            match = Match(bucket=LAKE, is_mutating=True, key_class=_DELTA_COMMIT)
        phase: Literal["before", "after"] = "after" if kill_at == "after commit" else "before"
        nth = kill_at if isinstance(kill_at, int) else 1
        rule = self._s3.wire.add(Rule(match, Kill(phase, lambda: _end(process)), nth=nth))
        try:
            yield rule
        finally:
            self._s3.wire.remove(rule)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
