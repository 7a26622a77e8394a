"""Warm the JVM up before the snapshot: guarded jobs on tables in an S3 of this machine, since no account is there yet.

A build may have other credentials than a MicroVM, or none, and no bucket. So the S3 that tests use runs beside the
handler, as a process that ends before the snapshot. The JVM must not be started for that S3: no variable and no setting
of it names the S3, the warm-up job does so itself (`warm_up_job`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.app import handle
from handler.outcome.state import State
from handler.stages.progress import Invocation, Progress
from safewriter.deadline import Deadline, epoch_ms
from safewriter.entropy import unique_id
from safewriter.objects.s3 import forget_clients

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from handler.services import Services

__all__ = ["WarmUp", "WarmUpError", "warm_up_folder"]

_REPOSITORY: Final = Path(__file__).resolve().parents[2]
_JOB: Final = Path(__file__).with_name("warm_up_job.py")
_LESSONS: Final = "image/archive/train.py"
_SCRIPTS: Final = "warm-up-scripts"
_LAKE: Final = "warm-up-lake"
_CHECKPOINTS: Final = "warm-up-checkpoints"
_END_TIMEOUT_S: Final = 10.0
_TIDY_TIMEOUT_S: Final = 60.0
_VARIABLES: Final = {
    "AWS_ACCESS_KEY_ID": "WARMUP",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret",
    "AWS_SESSION_TOKEN": "not-a-secret",  # boto3 takes no answer of the handler's without one
    "AWS_EC2_METADATA_DISABLED": "true",
}
_REAL: Final = ("AWS_PROFILE", "AWS_ENDPOINT_URL")
_OF_JOBS: Final = frozenset(
    {"SCRIPT_BUCKET", "SPARK_SCRIPT", "SOAL_ENTRY_POINT", "SOAL_SECRETS", "SOAL_TURNS", "SW_CHECKPOINT_BUCKET"}
)
"""The image's variables that name places or secrets of an account."""


class WarmUpError(Exception):
    """A warm-up job has failed, or has not left a JVM."""


def warm_up_folder(soal_home: Path) -> Path:
    """Return the folder with the S3's code and the lessons: in the image below SOAL_HOME, else the working tree."""
    baked = soal_home / "warm-up"
    return baked if baked.is_dir() else _REPOSITORY


@dataclass(frozen=True, slots=True)
class WarmUp:
    """`rounds` jobs, the first of them with the lessons of the class-data archive's training if `lessons`."""

    folder: Path
    rounds: int = 16
    lessons: bool = True
    python: str = sys.executable
    """The interpreter of the S3."""

    def run(
        self, environment: Mapping[str, str], memory_mb: int, total_ms: int, services: Services, *, again: bool
    ) -> None:
        """Run the jobs, or only one if `again`. `total_ms`: the whole time of a job, for which the JVM is started."""
        own = {name: value for name, value in environment.items() if name not in _OF_JOBS}
        own["SW_CHECKPOINT_BUCKET"] = _CHECKPOINTS
        with self._s3() as endpoint, _with(endpoint):
            for number in range(1 if again else self.rounds):
                arguments = [endpoint, f"s3a://{_LAKE}", str(number)]
                lessons = self.lessons and number == 0 and not again
                event = {
                    "entryPoint": f"s3://{_SCRIPTS}/{_JOB.name}",
                    "entryPointArguments": [*arguments, *(["--lessons"] if lessons else [])],
                    "pyFiles": [f"s3://{_SCRIPTS}/{Path(_LESSONS).name}"],
                    "clientToken": f"warm-up-{number}",
                }
                now_ms = epoch_ms()
                progress = Progress(
                    Invocation(
                        deadline=Deadline(now_ms + total_ms, now_ms),
                        request_id=f"warm-up-{number}",
                        run_id=unique_id(),
                        memory_mb=memory_mb,
                        cold_start=False,
                    )
                )
                result = handle(event, progress, own, services)
                if result.state is not State.SUCCESS:
                    raise WarmUpError(f"warm-up job {number} ended as {result.state}: {result.state_details}")
                if services.reuse.sandbox is None:
                    raise WarmUpError(f"warm-up job {number} left no JVM: {'; '.join(result.warnings)}")
        if services.reuse.sandbox is not None and not services.reuse.tidy(_TIDY_TIMEOUT_S):
            raise WarmUpError("the JVM did not come to rest after the warm-up jobs")

    @contextmanager
    def _s3(self) -> Iterator[str]:
        """Run the S3; yield its endpoint. It ends when its standard input closes."""
        buckets = [word for bucket in (_SCRIPTS, _LAKE, _CHECKPOINTS) for word in ("--bucket", bucket)]
        scripts = (_JOB, self.folder / _LESSONS)
        objects = [word for path in scripts for word in ("--object", f"{_SCRIPTS}/{path.name}={path}")]
        with subprocess.Popen(
            [self.python, "-P", "-m", "soal.testing.s3", *buckets, *objects],
            env={**os.environ, "PYTHONPATH": f"{self.folder}:{os.environ.get('PYTHONPATH', '')}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                endpoint = "" if process.stdout is None else process.stdout.readline().strip()
                if not endpoint:
                    raise WarmUpError("the S3 of the warm-up did not start")
                yield endpoint
            finally:
                if process.stdin is not None:
                    process.stdin.close()
                try:
                    process.wait(_END_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    process.kill()


@contextmanager
def _with(endpoint: str) -> Iterator[None]:
    """Let this process use the S3, and serve its credentials to Java."""
    before = {name: os.environ.get(name) for name in (*_VARIABLES, *_REAL, "AWS_ENDPOINT_URL_S3")}
    os.environ.update({**_VARIABLES, "AWS_ENDPOINT_URL_S3": endpoint})
    for name in _REAL:
        os.environ.pop(name, None)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        forget_clients()
