"""The stack's settings: CDK context (`-c key=value`, or cdk.json) as one validated value."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
)

from handler.module_names import check_file
from infra.names import CapacityProviderArn, Database, KeyArn, SecurityGroupId, SubnetId, VpcId, Zone
from infra.places import (
    BucketPrefix,
    ImageUri,
    check_name,
    check_open,
    check_references,
    check_schedule,
    is_of_catalogs,
)

# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
_LOG_RETENTION_DAYS: Final = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)
# An event may wait 6 hours for its invocation, and its failure 14 days in the queue. A replay after that must still
# find the run's document, or the same token would start a new run.
FAILURE_QUEUE_DAYS: Final = 14
_CHECKPOINT_DAYS_MIN: Final = FAILURE_QUEUE_DAYS + 1

_EXECUTION_TIME: Final = re.compile(r"([0-9]{1,4})([hd])")
_UNITS: Final = {"h": "hours", "d": "days"}
# https://docs.aws.amazon.com/lambda/latest/api/API_DurableConfig.html
_EXECUTION_DAYS_MAX: Final = 365

Deployment = Literal[
    "canary_10_percent_5_minutes",
    "canary_10_percent_10_minutes",
    "canary_10_percent_15_minutes",
    "canary_10_percent_30_minutes",
    "linear_10_percent_every_1_minute",
    "linear_10_percent_every_2_minutes",
    "linear_10_percent_every_3_minutes",
    "linear_10_percent_every_10_minutes",
]
"""CodeDeploy's strategies: a tenth first and the rest after some minutes, or another tenth each time."""


def _words(value: object) -> object:
    """Split `a,b` into a list: on the command line every context value is a text."""
    return [word.strip() for word in value.split(",") if word.strip()] if isinstance(value, str) else value


def _mapping(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError('must be a JSON object, as {"TABLE": "s3a://lake/t"}') from None


def _patterns(value: object) -> object:
    """Split at blanks and line ends: a pattern of values may hold a comma."""
    return value.split() if isinstance(value, str) else value


def _place(value: object) -> object:
    return BucketPrefix.parse(value) if isinstance(value, str) else value


def _execution_time(value: object) -> object:
    if not isinstance(value, str):
        return value
    match = _EXECUTION_TIME.fullmatch(value)
    time = None if match is None else timedelta(**{_UNITS[match[2]]: int(match[1])})
    if time is None or not timedelta(hours=1) <= time <= timedelta(days=_EXECUTION_DAYS_MAX):
        raise ValueError(f"must be hours or days, as 12h or 3d, and {_EXECUTION_DAYS_MAX} days at most")
    return time


def _number(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


def _image(value: object) -> object:
    return ImageUri.parse(value) if isinstance(value, str) else value


_Words = BeforeValidator(_words)
_Patterns = BeforeValidator(_patterns)
_Place = Annotated[BucketPrefix, BeforeValidator(_place)]


def _script(key: str) -> str:
    if not {".", "..", ""}.isdisjoint(key.split("/")):
        raise ValueError("holds '.', '..' or nothing between two '/'; name the key itself")
    check_file(key.rsplit("/", 1)[-1])
    return key


_Script = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./-]*\.py$", max_length=512), AfterValidator(_script)]
# With the time of a schedule it is a run key, whose length is limited.
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,42}$")]
_TagKey = Annotated[str, Field(pattern=r"^[\w .:/=+@-]+$", max_length=128)]
_TagValue = Annotated[str, Field(pattern=r"^[\w .:/=+@-]*$", max_length=256)]


class Scheduled(BaseModel):
    """A script that a schedule of its own runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schedule: Annotated[str, AfterValidator(check_schedule)]
    """`rate(…)` or `cron(…)`."""
    script: _Script
    """The script's key, below `scripts`."""
    arguments: Annotated[tuple[Annotated[str, Field(max_length=4096)], ...], Field(max_length=100)] = ()
    """Its arguments; in them Scheduler replaces `<aws.scheduler.scheduled-time>`."""
    timezone: Annotated[str, Field(pattern=r"^[A-Za-z0-9_+/-]{1,50}$")] = "UTC"
    """The time zone of a `cron(…)`, such as `Europe/Rome`."""


class Config(BaseModel):
    """The settings of a deployment. Every field is a context key of the same name; all have defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    stack_name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,127}$")] = "Soal"
    """The stack's name, which is also the dimension of its metrics."""
    tags: Annotated[dict[_TagKey, _TagValue], BeforeValidator(_mapping)] = Field(default_factory=dict)
    """Tags of all that the stack makes, for cost allocation."""

    # The function.
    image_uri: Annotated[ImageUri, BeforeValidator(_image)] | None = None
    """An image of a private ECR repository, by digest. Without it the CDK builds the Dockerfile, and needs Docker."""
    image_variant: Literal["slim", "full"] = "slim"
    """The variant of the image that the CDK builds: `full` has NumPy, pandas, PyArrow, MLlib, Avro and more."""
    architecture: Literal["x86_64", "arm64"] = "x86_64"
    """The processor of image and functions. The arm64 image has never run a job (docs/guides/image.md)."""
    memory_mb: Annotated[int, Field(ge=1024, le=32768)] = 3008
    """The memory of a run; more memory is also more processors. A new account may have 3008. At most 10240, except with
    `capacity_provider`, and then at least 2048."""
    ephemeral_storage_mb: Annotated[int, Field(ge=512, le=10240)] = 2048
    """The size of `/tmp`, which holds Spark's shuffle files."""
    timeout_s: Annotated[int, Field(ge=60, le=5400)] = 900
    """The timeout of a run, in seconds. At most 900, except with `capacity_provider`."""
    capacity_provider: CapacityProviderArn | None = None
    """The ARN of a capacity provider: runs are on its Managed Instances, one at a time in an environment. A change from
    or to none replaces the function."""
    microvm_timeout_s: Annotated[int, Field(ge=60, le=28800)] | None = None
    """The maximum duration of a MicroVM, in seconds: the stack also makes a MicroVM image on top of `image_uri`, from
    which `soal invoke --microvm` starts MicroVMs. Needs `architecture=arm64`."""
    microvm_memory_mb: Annotated[Literal[2048, 4096, 8192], BeforeValidator(_number)] = 4096
    """The baseline of a MicroVM's memory, which jobs may use; a processor for each 2048."""
    microvm_base_version: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?$", max_length=16)] = "1"
    """The version of Lambda's base image `al2023-1`, as `list-managed-microvm-image-versions` shows them."""
    reserved_concurrency: Annotated[int, Field(ge=1, le=10000)] | None = None
    """The largest number of runs at once; as many are reserved."""
    provisioned_concurrency: Annotated[int, Field(ge=1, le=10000)] | None = None
    """How many sandboxes Lambda keeps ready for the alias, each with a JVM: their first runs are warm. They
    cost by the hour, used or not."""
    retry_attempts: Annotated[int, Field(ge=0, le=2)] = 0
    """How often Lambda retries a failed event: the same event is the same run, so nothing is written twice."""
    max_event_age_s: Annotated[int, Field(ge=60, le=21600)] = 21600
    """How long an asynchronous event may wait for an attempt."""
    continue_max: Annotated[int, Field(ge=0, le=1000)] = 0
    """How often a run continues itself after its deadline."""
    durable: Annotated[timedelta, BeforeValidator(_execution_time)] | None = None
    """`12h`, `3d`: the function is a durable one, and an event one execution of as many attempts as it needs in that
    time. A function is made durable or not: a change of that replaces it."""
    errors: Literal["raise", "return"] = "raise"
    """`return`: a failed run is an answer like any other, and no alarm, retry or destination sees it."""
    jit: Literal["auto", "c1", "full"] = "auto"
    """How Java compiles: quickly (`c1`) or well (`full`)."""
    reuse: Literal["on", "off"] = "on"
    """Whether the JVM of a job that ended well runs the next one of its sandbox."""
    event_logs: Literal["on", "off"] = "off"
    """Whether each attempt's Spark events are kept in the checkpoint bucket, for `soal runs ui`."""
    warn_before_ms: Annotated[int, Field(ge=1000, le=1_350_000)] | None = None
    """How long before the deadline open writes are settled: at most a quarter of the timeout."""
    audit_log: bool = True
    """Keep one line for each rollback."""
    entry_point: _Script | None = None
    """The script for events that name none: its key, below `scripts`."""
    environment: Annotated[dict[str, str], BeforeValidator(_mapping)] = Field(default_factory=dict)
    """Variables for the job."""
    conf: Annotated[dict[str, str], BeforeValidator(_mapping)] = Field(default_factory=dict)
    """Spark settings of the function's own, such as its catalogs."""
    conf_allow: Annotated[tuple[Annotated[str, Field(pattern=r"^spark\.[^\s=]+(=\S*)?$")], ...], _Patterns] = ()
    """Further Spark settings that an event may bring: KEY or KEY=VALUE, with * in both."""
    secrets: Annotated[dict[str, str], BeforeValidator(_mapping)] = Field(default_factory=dict)
    """Variables of the job, or Spark settings, with values in Secrets Manager: name to ARN or ARN#json-key."""
    secret_kms_key_arns: Annotated[tuple[KeyArn, ...], _Words] = ()
    """Keys that encrypt `secrets`, if that is not the key of Secrets Manager itself."""
    tracing: bool = False
    """Trace the functions with X-Ray."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Which lines the functions log."""
    log_retention_days: int = 30
    """How long CloudWatch keeps the logs. The log groups outlive the stack."""

    # Storage.
    data: Annotated[tuple[_Place, ...], _Words] = ()
    """The places that jobs read and write, as bucket or bucket/prefix."""
    read_only_data: Annotated[tuple[_Place, ...], _Words] = ()
    """The places that jobs only read. They have no access to any other place outside `data`."""
    lake_bucket: bool = False
    """Make a bucket for tables, besides `data`."""
    conditional_commits: bool = False
    """The lake bucket refuses a PUT of a Delta table's commit file without a condition."""
    scripts: _Place | None = None
    """The place of the job scripts, apart from `data` and `s3_trigger`; without it the stack has a bucket for them."""
    checkpoint_days: Annotated[int, Field(ge=_CHECKPOINT_DAYS_MIN, le=3650)] = 30
    """How long a finished run's documents live, longer than any event can be delivered again; and how long the old
    versions of documents stay."""
    coordination: Literal["s3", "dynamodb"] = "s3"
    """Where jobs take their turns: in the checkpoint bucket, or in a DynamoDB table that the stack makes for it."""
    turns: Annotated[dict[str, dict[str, dict[str, str]]], BeforeValidator(_mapping)] = Field(default_factory=dict)
    """The jobs that take turns: lock to job to its `script`, a key below `scripts`, and its `predecessor` and other
    keys."""
    kms: bool = False
    """A key of the stack's own for its buckets, queues, topic and logs, instead of those of the services."""
    data_kms_key_arns: Annotated[tuple[KeyArn, ...], _Words] = ()
    """Keys that encrypt `data`."""

    # Catalogs.
    glue_databases: Annotated[tuple[Database, ...], _Words] = ()
    """Databases of the Glue catalog whose tables jobs read and change, and in which settlers set fences."""

    # Network.
    network: Literal["none", "own", "existing"] = "none"
    """No network, one of the stack's own without internet, or one that exists."""
    vpc_id: VpcId | None = None
    """With `network=existing`: the network."""
    subnet_ids: Annotated[tuple[SubnetId, ...], Field(max_length=16), _Words] = ()
    """With `network=existing`: its subnets."""
    availability_zones: Annotated[tuple[Zone, ...], _Words] = ()
    """With `network=existing`: one zone for each subnet."""
    security_group_ids: Annotated[tuple[SecurityGroupId, ...], Field(max_length=5), _Words] = ()
    """With `network=existing`: the functions' security groups."""

    # Triggers.
    schedule: Annotated[str, AfterValidator(check_schedule)] | None = None
    """`rate(…)` or `cron(…)`: runs `entry_point`."""
    schedules: Annotated[dict[_Name, Scheduled], BeforeValidator(_mapping)] = Field(default_factory=dict)
    """Named schedules: name to `schedule`, `script` (a key below `scripts`), `arguments` and `timezone`."""
    state_machine: bool = False
    """Make a state machine of Step Functions that makes as many attempts of a run as it needs."""
    s3_trigger: _Place | None = None
    """A bucket or prefix whose new objects run `entry_point`; the bucket sends its events to EventBridge."""
    queue: bool = False
    """Make an SQS queue of events."""
    queue_receives: Annotated[int, Field(ge=1, le=100)] = 3
    """How often a message is tried before it goes to the dead-letter queue."""
    queue_concurrency: Annotated[int, Field(ge=2, le=1000)] = 2
    """How many messages of the queue run at once."""
    queue_age_alarm_minutes: Annotated[int, Field(ge=5, le=20160)] = 360
    """How long a message may wait; a failed one is delivered again after six timeouts."""

    # Operations.
    gradual_deployment: Deployment | None = None
    """CodeDeploy gives a new version its runs step by step, and takes them away once one of them has failed."""
    sweep_minutes: Annotated[int, Field(ge=1, le=1440)] = 15
    """How often the sweeper runs."""
    redrive_attempts: Annotated[int, Field(ge=0, le=100)] = 0
    """How many attempts of a run the redrive function makes in all, from the failure queue; 0: only people redrive."""
    redrive_minutes: Annotated[int, Field(ge=15, le=1440)] = 60
    """How often the redrive function runs."""
    open_write_alarm_minutes: Annotated[int, Field(ge=16, le=10080)] = 60
    """How long a write may be open before an alarm: longer than the timeout."""
    alarm_email: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")] | None = None
    """The mail address for the alarms."""

    @field_validator("log_retention_days")
    @classmethod
    def _known_retention(cls, days: int) -> int:
        if days not in _LOG_RETENTION_DAYS:
            raise ValueError(f"CloudWatch keeps logs for one of {', '.join(map(str, _LOG_RETENTION_DAYS))} days")
        return days

    @field_validator("environment")
    @classmethod
    def _free_names(cls, environment: dict[str, str]) -> dict[str, str]:
        for name, value in environment.items():
            check_name(name)
            if "\0" in value:
                raise ValueError(f"the value of {name} holds a NUL, which ends it")
        check_open(environment)
        return environment

    @field_validator("conf")
    @classmethod
    def _open_settings(cls, conf: dict[str, str]) -> dict[str, str]:
        check_open(conf)  # infra/contradictions.py runs the handler's own checks later
        return conf

    @field_validator("secrets")
    @classmethod
    def _references(cls, secrets: dict[str, str]) -> dict[str, str]:
        check_references(secrets)
        return secrets

    @property
    def catalog_environment(self) -> dict[str, str]:
        """The job's variables with which pyiceberg reaches catalogs: a settler needs them, too."""
        return {name: value for name, value in self.environment.items() if is_of_catalogs(name)}

    @property
    def catalog_secrets(self) -> dict[str, str]:
        """The same variables from `secrets`."""
        return {name: reference for name, reference in self.secrets.items() if is_of_catalogs(name)}
