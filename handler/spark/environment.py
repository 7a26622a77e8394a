"""The environments of a job: fresh ones, in which nothing of an event is a variable.

The job's Python has the function's variables, and the secrets. Its Java has none of them: Java's libraries replace
names of variables by their values, in settings, paths and SQL, which may come from an argument or from a bucket.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from safewriter.coordination.borrowed import VARIABLE as TURN_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handler.request.job import Job
    from handler.sandbox.sandbox import Sandbox
    from safewriter.deadline import Deadline

__all__ = ["AttemptVariables", "job_variables", "machine_environment"]

# Variables that the handler sets itself, and those that would change how Spark or Python start.
_WITHHELD: Final = re.compile(
    r"SOAL_.*|SPARK_(?!SCRIPT$).*|PYSPARK_.*|HADOOP_.*|YARN_.*|PYTHON.*|VIRTUAL_ENV|CONDA_.*|JAVA_HOME|HOME|TMP|TEMP|TMPDIR"
    r"|PWD|OLDPWD|SHLVL|_|_HANDLER|_X_AMZN_.*|AWS_LAMBDA_RUNTIME_API|AWS_LAMBDA_LOG_.*|LAMBDA_RUNTIME_DIR|XDG_.*|LC_.*|LANGUAGE"
)
_OF_INVOCATION: Final = re.compile(r"_X_AMZN_.*")  # withheld from Java, which outlives the invocation
# Java and its Python processes need these when they start; the rest of the function's variables is Python's alone.
_FOR_JAVA: Final = re.compile(
    r"PATH|LANG|TZ|LD_.*|MALLOC_.*|GLIBC_TUNABLES|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|(?i:https?_proxy|no_proxy)"
    r"|AWS_(?:REGION|DEFAULT_REGION|ENDPOINT_URL.*|USE_\w+_ENDPOINT|RETRY_MODE|MAX_ATTEMPTS|EC2_METADATA_DISABLED"
    # By which it asks this process for the role's credentials.
    r"|CONTAINER_CREDENTIALS_FULL_URI|CONTAINER_AUTHORIZATION_TOKEN)"
)
_WORKER: Final = Path(__file__).resolve().parents[1] / "driver" / "worker"
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class AttemptVariables:
    """The facts of an attempt that its job is told; `total_ms` is its whole time."""

    run_id: str
    request_id: str
    deadline_epoch_ms: int
    total_ms: int
    turn: str | None = None

    @classmethod
    def of(cls, run_id: str, request_id: str, deadline: Deadline, turn: str | None = None) -> AttemptVariables:
        """Describe the attempt that has until `deadline`, and the `turn` that the handler holds for it."""
        return cls(run_id, request_id, deadline.at_ms, deadline.at_ms - deadline.started_ms, turn)


def machine_environment(sandbox: Sandbox, inherited: Mapping[str, str], *, spark_home: Path) -> dict[str, str]:
    """Build the environment of a JVM from the function's variables. Nothing of it is of one job alone, and
    nothing is a secret that serves anybody outside this machine.
    """
    for_java = {name: value for name, value in inherited.items() if _FOR_JAVA.fullmatch(name)}
    return {
        "PATH": _PATH,
        "LANG": "C.UTF-8",
        **for_java,
        "HOME": str(sandbox.home),
        "TMPDIR": str(sandbox.tmp),
        "SPARK_HOME": str(spark_home),
        "SPARK_LOCAL_DIRS": str(sandbox.tmp),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
        # An empty folder: Spark must read settings only from the properties file.
        "SPARK_CONF_DIR": str(sandbox.home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # Where packages are installed, behind the first lines of the Python processes of functions. The handler is not
        # among them in the image: its names are left to the job.
        "PYTHONPATH": f"{_WORKER}:{spark_home.parent}",
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SOAL_JOB": str(sandbox.job_file),
    }


def job_variables(
    job: Job, sandbox: Sandbox, attempt: AttemptVariables, inherited: Mapping[str, str]
) -> dict[str, str]:
    """Build the variables that a job's Python processes have besides those of their JVM: the function's, and
    those about their attempt.
    """
    return {
        **{name: value for name, value in inherited.items() if _is_passed(name)},
        "SOAL_RUN_ID": attempt.run_id,
        "SOAL_RUN_KEY": job.run_key,
        "SOAL_REQUEST_ID": attempt.request_id,
        "SOAL_JOB_FINGERPRINT": job.fingerprint,
        "SOAL_DEADLINE_EPOCH_MS": str(attempt.deadline_epoch_ms),
        # Handler and guard must compute the lead from the same time.
        "SOAL_STARTED_EPOCH_MS": str(attempt.deadline_epoch_ms - attempt.total_ms),
        "SOAL_JOURNAL": str(sandbox.journal),
        "SOAL_GO": str(sandbox.go),
        **({} if attempt.turn is None else {TURN_VARIABLE: attempt.turn}),
        **({"SOAL_EVENT_FILE": str(sandbox.event_file)} if job.trigger_event is not None else {}),
    }


def _is_passed(name: str) -> bool:
    return _OF_INVOCATION.fullmatch(name) is not None or _WITHHELD.fullmatch(name) is None
