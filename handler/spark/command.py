"""Make the command that runs a job: a Java machine of our own (io.soal.host.Host), no shell and no launcher in between.

The stock `spark-submit` needs bash and /dev/fd, which Lambda does not have, and starts one more Java machine. This
module adds what its launcher would add: the class path, the heap, and the options that let Spark run on Java 17.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.input_errors import InputError, found
from handler.request.job import EventForm
from handler.secrets import Secrets
from handler.spark.archive import archive_options
from handler.spark.classpath import find_pyspark, jars
from handler.spark.environment import AttemptVariables, job_variables, machine_environment
from handler.spark.properties import read_properties, write_properties
from handler.spark_settings.catalogs import file_io
from handler.spark_settings.own_disk import OWN_DISK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handler.request.job import Job
    from handler.sandbox.sandbox import Sandbox
    from handler.sandbox.script import Files
    from handler.settings import HandlerSettings

__all__ = ["HOST", "RUNNER", "Command", "Machine", "check", "compose", "compose_machine", "heap_mb", "this_machine"]

_MB_PER_CORE: Final = 1769  # https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
_CORES_MAX: Final = 6
_HEAP_MIN_MB: Final = 512
_RESERVE_MIN_MB: Final = 512
_RESERVE_SHARE: Final = 0.35
_SERIAL_GC_CORES_MAX: Final = 2
_C1_TIMEOUT_MAX_MS: Final = 60_000
# Ten times Java's own thresholds: most code that the optimising compiler compiles in a job's first minute does not run
# often enough to pay for it. `scripts/lab bench start --timeout-s 300` shows the short end.
_C2_LATER: Final = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
_HUGE_PAGES: Final = Path("/sys/kernel/mm/transparent_hugepage/enabled")
HOST: Final = "io.soal.host.Host"
_THREADS: Final = "OMP_NUM_THREADS"
_OF_A_CONTEXT: Final = ("spark.sql.", "spark.app.", "spark.ui.")
RUNNER: Final = ("--class", "io.soal.host.PythonDrivers", "spark-internal")
"""In place of Spark's own PythonRunner, which a Python script as the submission's resource would mean."""
_DRIVERS: Final = Path(__file__).resolve().parents[1] / "driver" / "server.py"
_IMAGE_FILES: Final = Path(__file__).resolve().parents[2] / "image" / "spark"
_NO_SECRETS: Final = Secrets()
_UNITS: Final = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}

# Options of Spark's own launcher (org.apache.spark.launcher.JavaModuleOptions in 4.1.4), without the vector module:
# only MLlib uses it, and it is another incubator module at each start. A test compares the two.
MODULE_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.io",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.ref",
            "java.base/sun.nio.ch",
            "java.base/sun.nio.cs",
            "java.base/sun.security.action",
            "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--enable-native-access=ALL-UNNAMED",
)


@dataclass(frozen=True, slots=True)
class Machine:
    """The function's machine: memory as configured, and the cores that this process may use."""

    memory_mb: int
    cores_present: int
    has_huge_pages: bool = False
    """Whether a process may ask for them; without any, Java would warn in the job's log."""

    @property
    def cores(self) -> int:
        """Lambda gives one core per 1,769 MB, up to six."""
        return max(1, min(math.ceil(self.memory_mb / _MB_PER_CORE), _CORES_MAX, self.cores_present))

    @property
    def reserve_mb(self) -> int:
        """Memory that is not heap.

        Beside the heap live the rest of the Java machine (metaspace, code, threads, buffers of S3A: about 250 MB), the
        Python driver and this handler (about 100 MB each), and the Python workers of UDFs, which grow with the cores
        and so with the memory: hence a share, and a floor.
        """
        return max(_RESERVE_MIN_MB, int(self.memory_mb * _RESERVE_SHARE))

    @property
    def heap_mb(self) -> int:
        """`-Xmx`; below 512 MB Spark does not start."""
        return self.memory_mb - self.reserve_mb


@dataclass(frozen=True, slots=True)
class Command:
    """A Java machine, which inherits nothing, and the job that it is to run. Two commands are equal if one machine can
    run both jobs, the one after the other.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    """Those of Spark that outlive a Spark context."""
    submission: tuple[str, ...] = field(default=(), compare=False)
    """The arguments for Spark's submission of the job."""
    variables: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Of the job's Python processes."""


def check(job: Job, settings: HandlerSettings, machine: Machine) -> None:
    """Raise `InputError` if the job cannot start on this machine; call it before anything begins."""
    pyspark_home()
    find_java(settings)
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
    """Write the files that describe the job to Java and Python, and return the command. `inherited`: the function's
    variables, and those by which Java finds the role's credentials.
    """
    conf = _conf(job.conf, sandbox, settings, machine, secrets)
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
    """Return the command of the machine for jobs that bring no settings of their own, before there is one. `total_ms`:
    the whole time of a job.
    """
    conf = _conf(settings.conf, sandbox, settings, machine, _NO_SECRETS)
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
        str(find_java(settings)),
        *_java_options(conf, sandbox, settings, machine, total_ms),
        "-cp",
        ":".join(str(jar) for jar in jars(spark_home, settings.soal_home)),
        HOST,
        str(sandbox.submission_file),
        sys.executable,
        str(_DRIVERS),
    )
    environment = machine_environment(sandbox, inherited, spark_home=spark_home)
    # NumPy reads it when it is imported, and takes as many threads as Spark gives to a driver.
    environment[_THREADS] = conf.get("spark.driver.cores", "1")
    lasting = {key: value for key, value in conf.items() if not key.startswith(_OF_A_CONTEXT)}
    return Command(argv, environment, sandbox.work, lasting)


def pyspark_home() -> Path:
    """Return pip's pyspark, which is a whole Spark, without importing it."""
    found = find_pyspark()
    if found is None:
        raise InputError("pyspark", "is not installed beside the handler; run scripts/setup")
    return found


def find_java(settings: HandlerSettings) -> Path:
    """Return the java to run: `.soal/java` where set-up has made it, else JAVA_HOME, else the one on the path."""
    own = settings.soal_home / "java" / "bin" / "java"
    if own.exists():
        return own
    if settings.java_home is not None:
        return settings.java_home / "bin" / "java"
    on_path = shutil.which("java")
    if on_path is None:
        raise InputError("JAVA_HOME", "is not set and no java is on the path; install Java 17 or run scripts/setup")
    return Path(on_path)


def spark_file(settings: HandlerSettings, name: str) -> Path:
    """Return a file of image/spark: in the image below SOAL_HOME, else in the working tree."""
    baked = settings.soal_home / "spark" / name
    return baked if baked.exists() else _IMAGE_FILES / name


def _java_options(
    conf: Mapping[str, str], sandbox: Sandbox, settings: HandlerSettings, machine: Machine, total_ms: int
) -> tuple[str, ...]:
    c1 = settings.jit == "c1" or (settings.jit == "auto" and total_ms <= _C1_TIMEOUT_MAX_MS)
    serial = machine.cores <= _SERIAL_GC_CORES_MAX
    return (
        f"-Xmx{heap_mb(conf, machine)}m",
        "-XX:+UseSerialGC" if serial else "-XX:+UseParallelGC",
        # The initial size: Java's own choice for a function's memory is 16 MB, with a collection after each.
        "-XX:NewSize=96m",
        # The optimising compiler pays only in jobs of more than about half a minute.
        *(("-XX:TieredStopAtLevel=1",) if c1 else _C2_LATER),
        # To touch the heap for the first time, page by page, takes a twentieth of a cold run.
        *(("-XX:+UseTransparentHugePages",) if machine.has_huge_pages else ()),
        # After an OutOfMemoryError a driver would continue half-dead; the exit code is 3.
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
        *archive_options(settings.soal_home, sandbox.archive_log),
        *MODULE_OPTIONS,
        # io.soal.host.BetweenJobs restores Java's security properties, which have no other way back.
        "--add-opens=java.base/java.security=ALL-UNNAMED",
        f"-Djava.io.tmpdir={sandbox.tmp}",
        f"-Duser.home={sandbox.home}",
        f"-Dderby.system.home={sandbox.work}",
        # MySQL's driver, which Java loads with all others, would leave a thread, and the Java machine could not go on.
        "-Dcom.mysql.cj.disableAbandonedConnectionCleanup=true",
        f"-Dlog4j2.configurationFile={spark_file(settings, 'log4j2.properties')}",
    )


def heap_mb(given: Mapping[str, str], machine: Machine) -> int:
    """Return the heap that the settings ask for, or that the machine gives; `InputError` if it does not fit."""
    asked = given.get("spark.driver.memory")
    if asked is None:
        if machine.heap_mb < _HEAP_MIN_MB:
            raise InputError(
                "memory size",
                f"{machine.memory_mb} MB leave {machine.heap_mb} MB for Spark, which needs {_HEAP_MIN_MB} MB; give the"
                f" function at least {_HEAP_MIN_MB + _RESERVE_MIN_MB} MB",
            )
        return machine.heap_mb
    number, unit = re.fullmatch(r"([0-9]+)([a-z])b?", asked.lower(), re.ASCII).groups()  # type: ignore[union-attr]  # checked by confs
    heap_mb = int(int(number) * _UNITS[unit])
    most_mb = machine.memory_mb - _RESERVE_MIN_MB
    if not _HEAP_MIN_MB <= heap_mb <= most_mb:
        raise InputError(
            "conf.spark.driver.memory",
            f"{found(asked)} does not fit: between {_HEAP_MIN_MB}m and {most_mb}m of the function's"
            f" {machine.memory_mb} MB",
        )
    return heap_mb


def _conf(
    own: Mapping[str, str], sandbox: Sandbox, settings: HandlerSettings, machine: Machine, secrets: Secrets
) -> dict[str, str]:
    """Merge the settings: the image's defaults, the machine's, the job's own, those that must not change."""
    defaults = read_properties(spark_file(settings, "spark-defaults.conf"))
    cores = int(own.get("spark.driver.cores", machine.cores))
    conf = {
        **defaults,
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.default.parallelism": str(cores),
        "spark.sql.warehouse.dir": str(sandbox.work / "warehouse"),
        **OWN_DISK,
        **own,
        **secrets.spark_settings,
        "spark.master": f"local[{cores}]",
        "spark.driver.memory": f"{heap_mb(own, machine)}m",
        # Hadoop's defaults name the same folders, but from where Java starts.
        "spark.hadoop.hadoop.tmp.dir": str(sandbox.tmp),
        "spark.hadoop.fs.s3a.buffer.dir": str(sandbox.tmp / "s3a"),
        "spark.hadoop.io.seqfile.local.dir": str(sandbox.tmp / "io"),
        "spark.hadoop.mapreduce.cluster.local.dir": str(sandbox.tmp / "mapred"),
        **_store(settings),
    }
    conf |= file_io(conf)
    extensions = (defaults.get("spark.sql.extensions", ""), own.get("spark.sql.extensions", ""))
    conf["spark.sql.extensions"] = ",".join(dict.fromkeys(part for part in ",".join(extensions).split(",") if part))
    return conf


def _store(settings: HandlerSettings) -> dict[str, str]:
    """Point S3A to where boto3 goes."""
    region = {"spark.hadoop.fs.s3a.endpoint.region": settings.region} if settings.region else {}
    if settings.s3_endpoint is None:
        return region
    return {
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        **region,
        "spark.hadoop.fs.s3a.endpoint": settings.s3_endpoint,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": str(settings.s3_endpoint.startswith("https://")).lower(),
    }


def _arguments(job: Job, sandbox: Sandbox) -> tuple[str, ...]:
    event = job.trigger_event
    if event is None:
        return job.arguments
    sandbox.event_file.write_text(event.text, encoding="utf-8")
    if event.form is EventForm.ARGUMENT:
        return (*job.arguments, "--event", event.text)
    return (*job.arguments, "--event-file", str(sandbox.event_file))


def this_machine(memory_mb: int) -> Machine:
    """Describe the machine that this process runs on."""
    return Machine(memory_mb, len(os.sched_getaffinity(0)), has_huge_pages=_may_ask_for_huge_pages())


def _may_ask_for_huge_pages() -> bool:
    try:
        return "[madvise]" in _HUGE_PAGES.read_text(encoding="ascii")
    except OSError:
        return False
