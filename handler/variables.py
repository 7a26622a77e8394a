"""The product's variables: one list, which stack, doctor, command line and docs/reference/settings use.

Pure data, which `infra` may import, too: it imports nothing of SoAL. A test compares the list with the code's reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = [
    "CATALOG_VARIABLES",
    "REFERENCE",
    "RESERVED",
    "SPARK_SETTING",
    "VARIABLES",
    "VARIABLE_NAME",
    "Reader",
    "Setter",
    "Variable",
]


class Reader(StrEnum):
    """The program that reads a variable."""

    JOB = "job function"
    """The handler and the job that it starts."""
    SWEEPER = "sweeper"
    REDRIVE = "redrive function"
    COMMAND = "soal"
    """The command line, on a person's machine."""


class Setter(StrEnum):
    """The program or person that gives a variable its value."""

    OWNER = "owner"
    """The function's owner: by the stack's context key if there is one, else by hand."""
    STACK = "stack"
    """The stack, from its own resources; it has no context key of its own."""
    PLATFORM = "platform"
    """Lambda, the image or the local emulator."""
    HANDLER = "handler"
    """The handler, for the one job that it starts. A function's own variable of that name has no effect."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable. `values` is for people; `choices`, `least` and `most` are bounds that programs check.

    `default` is the text of the value that applies if the variable is not set; empty: none. `key` is the stack's
    context key that sets this variable.
    """

    name: str
    values: str
    meaning: str
    readers: tuple[Reader, ...]
    default: str = ""
    key: str | None = None
    setter: Setter = Setter.OWNER
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None


_BOTH: Final = (Reader.JOB, Reader.SWEEPER)
_FUNCTIONS: Final = (Reader.JOB, Reader.SWEEPER, Reader.REDRIVE)
_BOOLEAN: Final = "true, false, 1, 0, yes or no, in any case"


def _for_the_job(name: str, values: str, meaning: str) -> Variable:
    return Variable(name, values, meaning, (Reader.JOB,), setter=Setter.HANDLER)


VARIABLES: Final = (
    # SafeWriter
    Variable(
        "SW_CHECKPOINT_BUCKET",
        "bucket or bucket/prefix",
        "where the checkpoint documents lie; required",
        (*_BOTH, Reader.COMMAND),
        setter=Setter.STACK,
    ),
    Variable(
        "SW_WARN_BEFORE_MS",
        "milliseconds",
        "how long before the deadline open writes are settled; at most a quarter of the whole time",
        (Reader.JOB,),
        default="30000",
        key="warn_before_ms",
        least=1,
    ),
    Variable("SW_AUDIT_LOG", _BOOLEAN, "keep one line for each rollback", _BOTH, default="true", key="audit_log"),
    Variable(
        "LAMBDA_TIMEOUT_MS",
        "milliseconds",
        "the deadline where the handler passes none, counted from the start of the process; without it 900000 on"
        " Lambda, 5400000 on its Managed Instances, and no deadline elsewhere",
        (Reader.JOB,),
        least=0,
    ),
    # The job's function
    Variable(
        "SOAL_ENTRY_POINT",
        "s3://bucket/key.py",
        "the script for events that name none; it gets the event as a file (`--event-file PATH`)",
        (Reader.JOB,),
    ),
    Variable(
        "SPARK_SCRIPT",
        "key, below SCRIPT_BUCKET",
        "the same; the script gets the event as an argument (`--event JSON`)",
        (Reader.JOB,),
        key="entry_point",
    ),
    Variable("SCRIPT_BUCKET", "bucket or bucket/prefix", "where SPARK_SCRIPT lies", (Reader.JOB,), setter=Setter.STACK),
    Variable(
        "SOAL_ACCEPT_CHANGED_SCRIPT",
        "on or off",
        "`on` is `acceptChangedScript` for every event, also for those of services, which have no such field; set it by"
        " hand for a retry, and remove it when the run has ended with its continuations: while it is set, whatever"
        " another caller has run under a token passes for the job's own",
        (Reader.JOB,),
        default="off",
        choices=("on", "off"),
    ),
    Variable(
        "SOAL_CONTINUE_MAX",
        "number",
        "how often a run may continue itself after its deadline (the role needs lambda:InvokeFunction on the function)",
        (Reader.JOB,),
        default="0",
        key="continue_max",
        least=0,
        most=1000,
    ),
    Variable(
        "SOAL_ERRORS",
        "raise or return",
        "`return` returns the document of a failed run instead of raising it: for callers that wait and read `state`",
        (Reader.JOB,),
        default="raise",
        key="errors",
        choices=("raise", "return"),
    ),
    Variable(
        "SOAL_JIT",
        "auto, c1 or full",
        "`c1` compiles quickly and `full` compiles well: `auto` takes `c1` where the whole time is at most a minute; a"
        " job of six million rows took 47 s with `c1`, 35 s with `full`",
        (Reader.JOB,),
        default="auto",
        key="jit",
        choices=("auto", "c1", "full"),
    ),
    Variable(
        "SOAL_REUSE",
        "on or off",
        "whether the JVM of a job that ended well runs the next one, in a Spark context of its own",
        (Reader.JOB,),
        default="on",
        key="reuse",
        choices=("on", "off"),
    ),
    Variable(
        "SOAL_EVENT_LOGS",
        "on or off",
        "whether each attempt's Spark events are kept in the checkpoint bucket, for `soal runs ui`",
        (Reader.JOB,),
        default="off",
        key="event_logs",
        choices=("on", "off"),
    ),
    Variable(
        "SOAL_TIMEOUT_S",
        "seconds",
        "the function's timeout: Lambda does not tell it before the first event, and Java starts earlier",
        (Reader.JOB,),
        default="900",
        key="timeout_s",
        least=1,
    ),
    Variable(
        "SOAL_MEMORY_MB",
        "megabytes",
        "in a MicroVM: the memory that jobs may use, which Lambda does not tell there",
        (Reader.JOB,),
        default="2048",
        least=1,
    ),
    Variable(
        "SOAL_CONF",
        "JSON object of strings",
        "Spark settings of the function's own, such as its catalogs; the sweeper needs those of Iceberg catalogs",
        _BOTH,
        key="conf",
    ),
    Variable(
        "SOAL_CONF_ALLOW",
        "KEY or KEY=VALUE, with * for any text, separated by blanks or lines",
        "Spark settings that an event may bring beyond those that every event may",
        (Reader.JOB,),
        key="conf_allow",
    ),
    Variable(
        "SOAL_SECRETS",
        "JSON object: variable, or Spark setting (spark.…), to the ARN of a secret, or ARN#json-key",
        "secrets that are read from Secrets Manager when a run begins, and become the job's variables or settings",
        _BOTH,
        key="secrets",
    ),
    Variable(
        "SOAL_TURNS",
        "JSON object: lock to its jobs, each with its script and its keys",
        "which script is which job of a lock, and in which order they take turns; an event names one of them at most",
        (Reader.JOB,),
        key="turns",
    ),
    Variable(
        "SW_LOCKS",
        "s3://bucket/prefix, dynamodb://table or zookeeper://host:port/path",
        "where jobs take their turns that name no `job.coordinator.backend`; not set: the checkpoint bucket",
        (Reader.JOB, Reader.COMMAND),
        setter=Setter.STACK,
    ),
    # The redrive's function
    Variable(
        "SOAL_REDRIVE_ATTEMPTS",
        "number",
        "how many attempts a run has in all before the redrive function sets it aside",
        (Reader.REDRIVE,),
        key="redrive_attempts",
        least=1,
        most=100,
    ),
    Variable("SOAL_REDRIVE_FUNCTION", "ARN", "the alias to invoke", (Reader.REDRIVE,), setter=Setter.STACK),
    Variable("SOAL_REDRIVE_QUEUE", "URL", "the failure queue", (Reader.REDRIVE,), setter=Setter.STACK),
    Variable(
        "SOAL_REDRIVE_PARKED",
        "URL",
        "the queue of failed events that no redrive can help",
        (Reader.REDRIVE,),
        setter=Setter.STACK,
    ),
    Variable(
        "SOAL_REDRIVE_JOBS",
        "ARN",
        "the queue of jobs; what SQS has moved from any other one is set aside; not set: all that SQS has moved",
        (Reader.REDRIVE,),
        setter=Setter.STACK,
    ),
    # Log and metrics, through Powertools
    Variable(
        "POWERTOOLS_LOG_LEVEL",
        "DEBUG, INFO, WARNING or ERROR",
        "which lines are logged",
        _FUNCTIONS,
        default="INFO",
        key="log_level",
        choices=("DEBUG", "INFO", "WARNING", "ERROR"),
    ),
    Variable(
        "POWERTOOLS_SERVICE_NAME",
        "text",
        "the dimension of all metrics; alarms ask for the stack's name",
        _FUNCTIONS,
        default="soal",
        setter=Setter.STACK,
    ),
    Variable(
        "POWERTOOLS_METRICS_NAMESPACE",
        "text",
        "the namespace of all metrics; alarms ask for the default",
        _FUNCTIONS,
        default="SoAL",
    ),
    # The command line
    Variable("SOAL_FUNCTION", "name or ARN", "the function that commands are about", (Reader.COMMAND,)),
    # The machine
    Variable(
        "SOAL_HOME",
        "folder",
        "where jars, Java and the archive are; without it /opt/soal in the image, .soal in a working tree",
        (Reader.JOB, Reader.COMMAND),
        setter=Setter.PLATFORM,
    ),
    Variable(
        "JAVA_HOME",
        "folder",
        "a Java 17, where SOAL_HOME has none",
        (Reader.JOB, Reader.COMMAND),
        setter=Setter.PLATFORM,
    ),
    Variable("TMPDIR", "folder", "where each run gets its folder", (Reader.JOB,), "/tmp", setter=Setter.PLATFORM),  # noqa: S108 - a default to show
    Variable(
        "SOAL_OWN_DIRECTORIES",
        "folders, with colons between",
        "directories that belong to this function alone: the handler empties them between jobs. The image names /tmp"
        " and /dev/shm",
        (Reader.JOB,),
        setter=Setter.PLATFORM,
    ),
    Variable(
        "SOAL_IMAGE_VARIANT",
        "slim or full",
        "the image's variant, by which the handler tells what a job is missing. The image names it",
        (Reader.JOB,),
        default="slim",
        setter=Setter.PLATFORM,
        choices=("slim", "full"),
    ),
    Variable(
        "SOAL_MEMORY_KILLS",
        "file",
        "where the local emulator counts the processes that it has killed for memory, in the kernel's place",
        (Reader.JOB,),
        setter=Setter.PLATFORM,
    ),
    Variable("AWS_REGION", "region", "the function's region", _FUNCTIONS, setter=Setter.PLATFORM),
    Variable(
        "AWS_LAMBDA_FUNCTION_NAME",
        "name",
        "the function's name, which is part of the key of a run that a trigger names",
        (Reader.JOB,),
        setter=Setter.PLATFORM,
    ),
    Variable(
        "AWS_LAMBDA_INITIALIZATION_TYPE",
        "on-demand, provisioned-concurrency or another word of Lambda's",
        "why Lambda makes the sandbox: with provisioned-concurrency the handler is initialised once Java waits for a"
        " job, as on Managed Instances, since nobody waits for the handler then; otherwise Java is not waited for",
        (Reader.JOB,),
        setter=Setter.PLATFORM,
    ),
    Variable(
        "AWS_LAMBDA_MAX_CONCURRENCY",
        "number",
        "on Managed Instances: how many events Lambda sends to one environment at once; the handler does not start"
        " unless it is 1",
        (Reader.JOB,),
        setter=Setter.PLATFORM,
        least=1,
    ),
    Variable("AWS_ENDPOINT_URL_S3", "URL", "another S3 than Amazon's", _BOTH),
    Variable("AWS_ENDPOINT_URL", "URL", "the same for all services that have no variable of their own", _FUNCTIONS),
    Variable("AWS_ENDPOINT_URL_SECRETS_MANAGER", "URL", "another Secrets Manager than Amazon's", _BOTH),
    # From the handler to the job
    _for_the_job("SOAL_RUN_ID", "text", "the attempt's own name"),
    _for_the_job("SOAL_RUN_KEY", "text", "the run's name, the same on every retry"),
    _for_the_job("SOAL_REQUEST_ID", "text", "Lambda's request id"),
    _for_the_job("SOAL_JOB_FINGERPRINT", "text", "hash of the script's place and its arguments"),
    _for_the_job("SOAL_DEADLINE_EPOCH_MS", "milliseconds since the epoch", "when the function's time is over"),
    _for_the_job("SOAL_STARTED_EPOCH_MS", "milliseconds since the epoch", "when it began"),
    _for_the_job("SOAL_JOURNAL", "file", "where the job tells the handler how far it is"),
    _for_the_job("SOAL_TURN", "JSON", "the turn that the handler holds for the job"),
    _for_the_job("SOAL_GO", "file", "the script waits for it"),
    _for_the_job("SOAL_JOB", "file", "the variables of the attempt and the places of its modules, as JSON"),
    _for_the_job("SOAL_VARIABLES", "socket", "from which the Python processes of functions get the variables"),
    _for_the_job("SOAL_EVENT_FILE", "file", "the event that has triggered the run, as JSON"),
)
"""All variables, in the order in which documents show them."""

# https://docs.aws.amazon.com/lambda/latest/api/API_Environment.html
VARIABLE_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_]+")
"""The names that Lambda accepts for a variable."""
RESERVED: Final = re.compile(
    r"AWS_.*|LAMBDA_.*|_.*|SOAL_.*|SW_.*|SPARK_.*|PYSPARK_.*|PYTHON.*|JAVA_.*|JDK_JAVA_.*|HADOOP_.*|YARN_.*|POWERTOOLS_.*"
    r"|SCRIPT_BUCKET|PATH|HOME|TMP|TEMP|TMPDIR|TZ|LANG"
)
"""Names that Lambda, the image or the handler own: a job's variable of such a name would break one of them, or never
reach the job.
"""
SPARK_SETTING: Final = re.compile(r"spark\.[A-Za-z0-9_.\-]{1,250}")
CATALOG_VARIABLES: Final = ("PYICEBERG_CATALOG__", "PGPASSWORD")
"""Prefixes of the variables with which pyiceberg and PostgreSQL's client reach catalogs. A settler needs the job's
values, too.
"""
REFERENCE: Final = re.compile(
    r"(?P<arn>arn:aws(?:-[a-z-]+)?:secretsmanager:(?P<region>[a-z]{2,4}(?:-[a-z]+)+-[0-9]):[0-9]{12}:secret:"
    r"[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6})(?:#(?P<key>.+))?"
)
"""The whole ARN of a secret, with the six characters that Secrets Manager adds to a name, and perhaps a key in it."""
