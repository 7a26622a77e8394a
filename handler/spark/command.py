"""Compose the command that runs a job: a JVM with io.soal.host.Host, without shell and launcher.

The stock `spark-submit` needs bash and /dev/fd, which Lambda does not have, and starts one more JVM. This package does
the work of its launcher: the class path (`classpath`), heap and options of the JVM (`jvm_options`).
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.request.job import EventForm
from handler.secrets import Secrets
from handler.spark.classpath import jars
from handler.spark.conf import merged_conf
from handler.spark.environment import AttemptVariables, job_variables, machine_environment
from handler.spark.installation import find_java, pyspark_home
from handler.spark.jvm_options import jvm_options
from handler.spark.machine import heap_mb
from handler.spark.properties import write_properties

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handler.request.job import Job
    from handler.sandbox.sandbox import Sandbox
    from handler.sandbox.script import Files
    from handler.settings import HandlerSettings
    from handler.spark.machine import Machine

__all__ = ["HOST", "RUNNER", "Command", "check", "compose", "compose_machine"]

HOST: Final = "io.soal.host.Host"
RUNNER: Final = ("--class", "io.soal.host.PythonDrivers", "spark-internal")
"""Replaces Spark's PythonRunner, which a submission with a Python script as its resource would use."""
_DRIVERS: Final = Path(__file__).resolve().parents[1] / "driver" / "server.py"
_THREADS: Final = "OMP_NUM_THREADS"
_OF_A_CONTEXT: Final = ("spark.sql.", "spark.app.", "spark.ui.")
_NO_SECRETS: Final = Secrets()


@dataclass(frozen=True, slots=True)
class Command:
    """A JVM, which inherits no variables, and the job that it should run. Two commands are equal if one JVM can run
    both jobs, one after the other.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    """The Spark settings that outlive a Spark context."""
    submission: tuple[str, ...] = field(default=(), compare=False)
    """The arguments for Spark's submission of the job."""
    variables: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The variables of the job's Python processes."""


def check(job: Job, settings: HandlerSettings, machine: Machine) -> None:
    """Raise `InputError` if the job cannot start on this machine; call this before any side effect."""
    pyspark_home()
    find_java(settings.soal_home, settings.java_home)
    heap_mb(job.conf, machine)


def compose(
    job: Job,
    files: Files,
    sandbox: Sandbox,
    settings: HandlerSettings,
    machine: Machine,
    attempt: AttemptVariables,
    inherited: Mapping[str, str],
    secrets: Secrets = _NO_SECRETS,
) -> Command:
    """Write the files that describe the job to the JVM and Python, and return the command. `inherited`: the function's
    variables, and those that lead the JVM to the role's credentials.
    """
    conf = merged_conf(job.conf, sandbox, settings, machine, secrets)
    command = _machine(conf, sandbox, settings, machine, attempt.total_ms, inherited)
    submission = (
        "--properties-file",
        str(sandbox.properties_file),
        *(("--name", job.name) if job.name else ()),
        *(("--py-files", ",".join(str(path) for path in files.py_files)) if files.py_files else ()),
        *RUNNER,
        str(files.script),
        *_arguments(job, sandbox),
    )
    variables = job_variables(job, sandbox, attempt, {**inherited, **secrets.variables})
    write_properties(sandbox.properties_file, conf)
    if settings.event_logs == "on":
        sandbox.event_logs.mkdir(exist_ok=True)  # Spark does not start without it
    sandbox.submission_file.write_text("".join(f"{word}\0" for word in submission), encoding="utf-8")
    about = {
        "variables": variables,
        "archives": [str(path) for path in files.py_files if path.suffix != ".py"],
        "properties": str(sandbox.properties_file),
    }
    sandbox.job_file.write_text(json.dumps(about), encoding="utf-8")
    return replace(command, submission=submission, variables=variables)


def compose_machine(
    sandbox: Sandbox,
    settings: HandlerSettings,
    machine: Machine,
    total_ms: int,
    inherited: Mapping[str, str],
) -> Command:
    """Return, before a job arrives, the command of a JVM for jobs without settings of their own. `total_ms`: the whole
    time of a job.
    """
    conf = merged_conf(settings.conf, sandbox, settings, machine, _NO_SECRETS)
    return _machine(conf, sandbox, settings, machine, total_ms, inherited)


def _machine(
    conf: Mapping[str, str],
    sandbox: Sandbox,
    settings: HandlerSettings,
    machine: Machine,
    total_ms: int,
    inherited: Mapping[str, str],
) -> Command:
    spark_home = pyspark_home()
    argv = (
        str(find_java(settings.soal_home, settings.java_home)),
        *jvm_options(conf, sandbox, settings, machine, total_ms),
        "-cp",
        ":".join(str(jar) for jar in jars(spark_home, settings.soal_home)),
        HOST,
        str(sandbox.submission_file),
        sys.executable,
        str(_DRIVERS),
    )
    environment = machine_environment(sandbox, inherited, spark_home=spark_home)
    # NumPy reads this variable at import; it gets the number of threads that Spark gives to a driver.
    environment[_THREADS] = conf.get("spark.driver.cores", "1")
    machine_conf = {key: value for key, value in conf.items() if not key.startswith(_OF_A_CONTEXT)}
    return Command(argv, environment, sandbox.work, machine_conf)


def _arguments(job: Job, sandbox: Sandbox) -> tuple[str, ...]:
    event = job.trigger_event
    if event is None:
        return job.arguments
    sandbox.event_file.write_text(event.text, encoding="utf-8")
    if event.form is EventForm.ARGUMENT:
        return (*job.arguments, "--event", event.text)
    return (*job.arguments, "--event-file", str(sandbox.event_file))
