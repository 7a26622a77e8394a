"""Measure a cold run beside that of aws-samples/spark-on-aws-lambda: a job (`JOBS`), by default a CSV file into Delta.

Both are fresh functions in the Lambda emulator, timed from the event to the answer, in turn on one embedded S3; each
run has a new table. The peer's handler is `tests.lab.bench.peer`; SoAL's job is guarded and supervised. Both run on the
host, or both in a container with Lambda's limits: SoAL in its image, the peer with this machine's Java and PySpark.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.settings import read_settings
from handler.spark.installation import find_java, pyspark_home
from scripts.emulator.container import Confinement, ContainerEmulator
from scripts.emulator.rie import LambdaEmulator
from scripts.image.docker import require, with_docker
from scripts.local.sample import put_sample
from scripts.provision.place import ROOT
from soal.console.problem import Failure
from soal.home import Home
from soal.local.names import BUCKETS, CHECKPOINTS, DATA, LAKE, SCRIPTS, SOURCE_KEY
from soal.testing.s3.embedded import EmbeddedS3
from tests.support.spark_session import JARS, stock_class_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scripts.local.function import Function
    from soal.invocation.report import Report

__all__ = ["JOBS", "Run", "StartCost", "measure", "new_table", "peer", "soal_event", "succeeded"]

JOBS: Final = {
    "append": ("accommodations_delta.py", "accommodations_delta_unguarded.py"),
    "sql": ("first_sql.py", "first_sql.py"),
    "heavy": ("heavy.py", "heavy.py"),
}
"""The script of each job, SoAL's and the peer's: only the append is guarded, and only in SoAL's."""
_OWN_SCRIPTS: Final = Path(__file__).parent / "scripts"
_PEER_HANDLER: Final = "tests.lab.bench.peer.lambda_handler"
_TIMEOUT_S: Final = 300
_PEER: Final = Path("/opt/peer")
"""The place of PySpark in the peer's container, unmodified as pip installs it."""


@dataclass(frozen=True, slots=True)
class Run:
    """A cold run: milliseconds from the event to the answer, and CPU seconds of all processes of the function,
    including Lambda's init phase.
    """

    ms: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class StartCost:
    """Medians over `rounds` pairs: times in milliseconds from the event to a cold function's answer, CPU time in
    seconds, and the pairs' ratios.

    `image` is None if both functions ran on the host.
    """

    job: str
    rounds: int
    image: str | None
    peer_ms: float
    soal_ms: float
    ratio: float
    ratio_min: float
    ratio_max: float
    peer_cpu_s: float
    soal_cpu_s: float
    cpu_ratio: float
    cpu_ratio_min: float
    cpu_ratio_max: float


def measure(
    rounds: int,
    image: str | None,
    function: Callable[[Mapping[str, str]], Function],
    job: str = "append",
    progress: Callable[[int], None] = lambda _: None,
) -> StartCost:
    """Run `rounds` pairs, the peer first; `function` makes SoAL's function, given the variables that reach the S3.

    Raises `Problem` if a job fails.
    """
    pairs: list[tuple[Run, Run]] = []
    with EmbeddedS3(buckets=BUCKETS) as s3:
        put_sample(s3.observer())
        for script in _OWN_SCRIPTS.glob("*.py"):
            s3.observer().put_object(Bucket=SCRIPTS, Key=f"jobs/{script.name}", Body=script.read_bytes())
        for turn in range(rounds):
            theirs = peer(s3, image, job)
            ours = function({**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS})
            report = succeeded(ours.invoke(soal_event(new_table(), job)))
            pairs.append((theirs, Run(float(report.duration_ms), report.cpu_s)))
            progress(turn + 1)
    ratios = [ours.ms / theirs.ms for theirs, ours in pairs]
    cpu_ratios = [ours.cpu_s / theirs.cpu_s for theirs, ours in pairs]
    return StartCost(
        job=job,
        rounds=rounds,
        image=image,
        peer_ms=statistics.median(theirs.ms for theirs, _ in pairs),
        soal_ms=statistics.median(ours.ms for _, ours in pairs),
        ratio=statistics.median(ratios),
        ratio_min=min(ratios),
        ratio_max=max(ratios),
        peer_cpu_s=statistics.median(theirs.cpu_s for theirs, _ in pairs),
        soal_cpu_s=statistics.median(ours.cpu_s for _, ours in pairs),
        cpu_ratio=statistics.median(cpu_ratios),
        cpu_ratio_min=min(cpu_ratios),
        cpu_ratio_max=max(cpu_ratios),
    )


def peer(s3: EmbeddedS3, image: str | None, job: str = "append") -> Run:
    """Return a cold run of a job in the peer's function, on a new table. Raises `Problem` if it fails."""
    settings = read_settings({**os.environ, "SW_CHECKPOINT_BUCKET": CHECKPOINTS})
    variables = {
        **s3.environment(),
        "SCRIPT_BUCKET": SCRIPTS,
        "SPARK_SCRIPT": f"jobs/{JOBS[job][1]}",
        "JAVA_HOME": str(find_java(settings.soal_home, settings.java_home).resolve().parents[1]),
        "CLASS_PATH": stock_class_path(),
    }
    with _peer_on_host(variables) if image is None else _peer_in_container(variables, image) as function:
        answer = function.invoke(_paths(new_table()))
        if answer.error is not None or answer.timed_out:
            raise Failure(f"spark-submit failed:\n{function.tail()}", todo="see above")
        return Run(float(answer.duration_ms), function.cpu_s())


@contextlib.contextmanager
def _peer_on_host(variables: Mapping[str, str]) -> Iterator[LambdaEmulator]:
    with tempfile.TemporaryDirectory(prefix="soal-bench-") as place:
        own = {"SPARK_HOME": str(pyspark_home()), "PYSPARK_PYTHON": sys.executable, "TMPDIR": place}
        with LambdaEmulator({**variables, **own}, timeout_s=_TIMEOUT_S, handler=_PEER_HANDLER) as function:
            yield function


@contextlib.contextmanager
def _peer_in_container(variables: Mapping[str, str], image: str) -> Iterator[LambdaEmulator]:
    """Run the peer with the image's system, Python and boto3. Its user needs a name: Spark fails without one."""
    java = Path(variables["JAVA_HOME"])
    settings = (java / "conf" / "net.properties").resolve().parent  # Debian keeps them in /etc
    shared = {str(path): str(path) for path in (ROOT, str(JARS.resolve()), java, settings, "/etc/passwd")}
    shared[str(pyspark_home())] = str(_PEER / "pyspark")
    own = {
        "SPARK_HOME": str(_PEER / "pyspark"),
        "PYSPARK_PYTHON": "python3",
        "PYTHONPATH": f"{ROOT}:{_PEER}:/opt/soal/python",
        "TMPDIR": "/tmp",
    }
    with with_docker(Home.of()) as docker:
        require(docker, image)
        with ContainerEmulator(
            docker,
            image,
            {**variables, **own},
            timeout_s=_TIMEOUT_S,
            confinement=Confinement(user=os.getuid()),
            mounts=[f"{here}:{there}:ro" for here, there in shared.items()],
            handler=_PEER_HANDLER,
        ) as function:
            yield function


def soal_event(table: str, job: str = "append") -> dict[str, object]:
    """Return the event of SoAL's job for a table."""
    arguments = [] if job == "sql" else [part for name, path in _paths(table).items() for part in (f"--{name}", path)]
    return {"entryPoint": f"s3://{SCRIPTS}/jobs/{JOBS[job][0]}", "entryPointArguments": arguments}


def new_table() -> str:
    """Return the place of a table that does not exist yet."""
    return f"s3a://{LAKE}/{uuid.uuid4().hex}"


def _paths(table: str) -> dict[str, str]:
    return {"source": f"s3a://{DATA}/{SOURCE_KEY}", "table": table}


def succeeded(report: Report) -> Report:
    """Return the report of SoAL's job. Raises `Problem` if the job failed."""
    if report.exit_code != 0:
        told = report.problem or (report.result.state_details if report.result is not None else "")
        raise Failure(f"the job failed: {told}", todo="see `soal doctor`")
    return report
