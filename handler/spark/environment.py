"""Build the environments of a job: fresh ones, in which no part of an event becomes a variable.

The job's Python has the function's variables and the secrets. Its JVM has neither: Java libraries expand variables in
settings, paths and SQL, which may come from an argument or from a bucket.
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

# Variables that the handler sets itself, and those that would change how Spark or Python starts.
_WITHHELD: Final = re.compile(
    r"SOAL_.*|SPARK_(?!SCRIPT$).*|PYSPARK_.*|HADOOP_.*|YARN_.*|PYTHON.*|VIRTUAL_ENV|CONDA_.*|JAVA_HOME|HOME|TMP|TEMP|TMPDIR"
    r"|PWD|OLDPWD|SHLVL|_|_HANDLER|_X_AMZN_.*|AWS_LAMBDA_RUNTIME_API|AWS_LAMBDA_LOG_.*|LAMBDA_RUNTIME_DIR|XDG_.*|LC_.*|LANGUAGE"
)
_OF_INVOCATION: Final = re.compile(r"_X_AMZN_.*")  # withheld from Java, which outlives the invocation
# The JVM and its Python processes need these when they start; only Python gets the function's other variables.
_FOR_JAVA: Final = re.compile(
    r"PATH|LANG|TZ|LD_.*|MALLOC_.*|GLIBC_TUNABLES|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|(?i:https?_proxy|no_proxy)"
    r"|AWS_(?:REGION|DEFAULT_REGION|ENDPOINT_URL.*|USE_\w+_ENDPOINT|RETRY_MODE|MAX_ATTEMPTS|EC2_METADATA_DISABLED"
    # With which it requests the role's credentials from this process.
    r"|CONTAINER_CREDENTIALS_FULL_URI|CONTAINER_AUTHORIZATION_TOKEN)"
)
_WORKER: Final = Path(__file__).resolve().parents[1] / "driver" / "worker"
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class AttemptVariables:
    """The facts of an attempt that its job gets as variables; `total_ms` is the attempt's whole time."""

    run_id: str
    request_id: str
    deadline_epoch_ms: int
    total_ms: int
    turn: str | None = None

    @classmethod
    def of(cls, run_id: str, request_id: str, deadline: Deadline, turn: str | None = None) -> AttemptVariables:
        """Describe an attempt with its `deadline` and the `turn` that the handler holds for it."""
        return cls(run_id, request_id, deadline.at_ms, deadline.at_ms - deadline.started_ms, turn)


def machine_environment(sandbox: Sandbox, inherited: Mapping[str, str], *, spark_home: Path) -> dict[str, str]:
    """Build the environment of a JVM from the function's variables. No variable belongs to a single job, and none is a
    secret of use outside this machine.
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
        # The installed packages, after the start-up code of Python workers. In the image these do not include the
        # handler, whose module names are left to the job.
        "PYTHONPATH": f"{_WORKER}:{spark_home.parent}",
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SOAL_JOB": str(sandbox.job_file),
        "SOAL_JOURNAL": str(sandbox.journal),
    }


def job_variables(
    job: Job, sandbox: Sandbox, attempt: AttemptVariables, inherited: Mapping[str, str]
) -> dict[str, str]:
    """Build the variables of a job's Python processes beyond those of the JVM: the function's, and those about the
    attempt.
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
        "SOAL_GO": str(sandbox.go),
        **({} if attempt.turn is None else {TURN_VARIABLE: attempt.turn}),
        **({"SOAL_EVENT_FILE": str(sandbox.event_file)} if job.trigger_event is not None else {}),
    }


def _is_passed(name: str) -> bool:
    return _OF_INVOCATION.fullmatch(name) is not None or _WITHHELD.fullmatch(name) is None
