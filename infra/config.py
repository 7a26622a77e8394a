"""The stack's settings: CDK context (`-c key=value`, or cdk.json) as one validated value."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from infra.overlaps import overlaps
from infra.places import BucketPrefix, ImageUri

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Config", "ConfigError"]

# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
_LOG_RETENTION_DAYS: Final = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)
# An event may wait 6 hours for its invocation and its failure 14 days in the queue; a replay after that must still find
# the run's document, or the same token would be a new run.
FAILURE_QUEUE_DAYS: Final = 14
_CHECKPOINT_DAYS_MIN: Final = FAILURE_QUEUE_DAYS + 1
# What pyiceberg and PostgreSQL's client read.
_OF_CATALOGS: Final = ("PYICEBERG_CATALOG__", "PGPASSWORD")
# The image's own, and what Lambda or the handler sets: a job's variable of that name would break the one or the other.
_RESERVED: Final = re.compile(
    r"AWS_.*|LAMBDA_.*|_.*|SOAL_.*|SW_.*|SPARK_.*|PYSPARK_.*|PYTHON.*|JAVA_.*|POWERTOOLS_.*|SCRIPT_BUCKET|PATH|HOME|TMPDIR|TZ|LANG"
)
_VARIABLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SCHEDULE: Final = re.compile(r"(rate|cron)\([^()]+\)")
_NOT_SUPPORTED: Final = {
    "lake_formation": "is not supported: Spark, the guard and the sweeper read and write S3 with their own roles, not"
    " with credentials of Lake Formation. Leave the data's location to IAM and name it in data; where Lake Formation"
    " guards the catalog, grant both roles their databases there",
}
_NAMES: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,127}")

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
"""Those of CodeDeploy: a tenth first and the rest after so many minutes, or a tenth more each time."""


class ConfigError(ValueError):
    """A context value that cannot be used: which key, what was found, what to write instead."""

    def __init__(self, key: str, found: object, remedy: str) -> None:
        super().__init__(f"context {key}={found}: {remedy}")
        self.key = key
        self.remedy = remedy


def _words(value: object) -> object:
    """Take `a,b` for a list: on the command line every context value is one text."""
    return [word.strip() for word in value.split(",") if word.strip()] if isinstance(value, str) else value


def _mapping(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError('must be a JSON object, as {"TABLE": "s3a://lake/t"}') from None


def _place(value: object) -> object:
    return BucketPrefix.parse(value) if isinstance(value, str) else value


def _image(value: object) -> object:
    return ImageUri.parse(value) if isinstance(value, str) else value


_Words = BeforeValidator(_words)
_Place = Annotated[BucketPrefix, BeforeValidator(_place)]


class Config(BaseModel):
    """What is deployed. Every field is a context key of the same name; all have defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    stack_name: Annotated[str, Field(pattern=_NAMES)] = "Soal"

    # The function.
    image_uri: Annotated[ImageUri, BeforeValidator(_image)] | None = None
    """An image that is there already; without it the CDK builds the repository's Dockerfile, and needs Docker."""
    architecture: Literal["x86_64", "arm64"] = "x86_64"
    memory_mb: Annotated[int, Field(ge=1024, le=10240)] = 3008
    """3008 is what a new account may have; more memory is also more processors."""
    ephemeral_storage_mb: Annotated[int, Field(ge=512, le=10240)] = 2048
    timeout_s: Annotated[int, Field(ge=60, le=900)] = 900
    reserved_concurrency: Annotated[int, Field(ge=1, le=10000)] | None = None
    retry_attempts: Annotated[int, Field(ge=0, le=2)] = 0
    """How often Lambda invokes again what failed: the same event is the same run, so nothing is written twice."""
    max_event_age_s: Annotated[int, Field(ge=60, le=21600)] = 21600
    continue_max: Annotated[int, Field(ge=0, le=1000)] = 0
    errors: Literal["raise", "return"] = "raise"
    """`return`: a failed run is an answer like any other, and no alarm, retry or destination learns of it."""
    warn_before_ms: Annotated[int, Field(ge=1000, le=225_000)] | None = None
    entry_point: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./-]*\.py$")] | None = None
    """The script for events that name none: its key, below `scripts`."""
    environment: Annotated[dict[str, str], BeforeValidator(_mapping)] = Field(default_factory=dict)
    """Variables for the job."""
    tracing: bool = False
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_retention_days: int = 30

    # Storage.
    data: Annotated[tuple[_Place, ...], _Words] = ()
    """What jobs read and write, as bucket or bucket/prefix."""
    read_only_data: Annotated[tuple[_Place, ...], _Words] = ()
    lake_bucket: bool = False
    """Make a bucket for tables, besides `data`."""
    conditional_commits: bool = False
    """The lake bucket refuses a commit file of a Delta table that is put without a condition."""
    scripts: _Place | None = None
    """Where the job scripts lie; without it the stack has a bucket for them."""
    checkpoint_days: Annotated[int, Field(ge=_CHECKPOINT_DAYS_MIN, le=3650)] = 30
    kms: bool = False
    """A key of the stack's own for its buckets, queues, topic and logs, instead of those of the services."""
    data_kms_key_arns: Annotated[tuple[str, ...], _Words] = ()
    """Keys with which `data` is encrypted."""

    # Catalogs.
    glue_databases: Annotated[tuple[str, ...], _Words] = ()

    # Network.
    network: Literal["none", "own", "existing"] = "none"
    vpc_id: str | None = None
    subnet_ids: Annotated[tuple[str, ...], _Words] = ()
    availability_zones: Annotated[tuple[str, ...], _Words] = ()
    security_group_ids: Annotated[tuple[str, ...], _Words] = ()

    # Triggers.
    schedule: str | None = None
    s3_trigger: _Place | None = None
    queue: bool = False
    queue_receives: Annotated[int, Field(ge=1, le=100)] = 3
    """How often a message is tried before it goes to the dead-letter queue."""
    queue_concurrency: Annotated[int, Field(ge=2, le=1000)] = 2
    queue_age_alarm_minutes: Annotated[int, Field(ge=5, le=20160)] = 360
    """How long a message may wait; a failed one comes back after six timeouts, which is an hour and a half."""

    # Operations.
    gradual_deployment: Deployment | None = None
    """A new version gets its runs step by step, by CodeDeploy, and none any more once one of them has failed."""
    sweep_minutes: Annotated[int, Field(ge=1, le=1440)] = 15
    redrive_attempts: Annotated[int, Field(ge=0, le=100)] = 0
    """Invoke again what lies in the failure queue, until a run has had so many attempts; 0: people do."""
    redrive_minutes: Annotated[int, Field(ge=15, le=1440)] = 60
    open_write_alarm_minutes: Annotated[int, Field(ge=16, le=10080)] = 60
    alarm_email: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$")] | None = None

    @field_validator("log_retention_days")
    @classmethod
    def _known_retention(cls, days: int) -> int:
        if days not in _LOG_RETENTION_DAYS:
            raise ValueError(f"CloudWatch keeps logs for one of {', '.join(map(str, _LOG_RETENTION_DAYS))} days")
        return days

    @field_validator("environment")
    @classmethod
    def _free_names(cls, environment: dict[str, str]) -> dict[str, str]:
        for name in environment:
            if not _VARIABLE.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a variable")
            if _RESERVED.fullmatch(name):
                raise ValueError(f"{name} belongs to Lambda, Spark or SoAL; give the job a name of its own")
        return environment

    @property
    def catalog_environment(self) -> dict[str, str]:
        """Variables of the job by which pyiceberg reaches catalogs: whoever settles needs them, too."""
        return {name: value for name, value in self.environment.items() if name.startswith(_OF_CATALOGS)}

    @field_validator("schedule")
    @classmethod
    def _expression(cls, schedule: str | None) -> str | None:
        if schedule is not None and not _SCHEDULE.fullmatch(schedule):
            raise ValueError("must be rate(…) or cron(…), as rate(1 day) or cron(0 3 * * ? *)")
        return schedule

    @model_validator(mode="after")
    def _together(self) -> Self:
        for error in self._contradictions():
            raise error
        return self

    def _contradictions(self) -> Iterator[ConfigError]:
        for key in ("schedule", "s3_trigger"):
            if getattr(self, key) is not None and self.entry_point is None:
                yield ConfigError(
                    key, getattr(self, key), "its events name no script; set entry_point to the one to run"
                )
        yield from (ConfigError(*found) for found in overlaps(self))
        if self.conditional_commits and not self.lake_bucket:
            yield ConfigError("conditional_commits", "true", "is about the lake bucket; set lake_bucket=true")
        if self.redrive_attempts and self.errors == "return":
            yield ConfigError("redrive_attempts", self.redrive_attempts, "with errors=return nothing counts as failed")
        if self.gradual_deployment is not None and self.errors == "return":
            yield ConfigError(
                "gradual_deployment", self.gradual_deployment, "with errors=return no failed run would take it back"
            )
        yield from self._network_contradictions()

    def _network_contradictions(self) -> Iterator[ConfigError]:
        keys = ("vpc_id", "subnet_ids", "availability_zones", "security_group_ids")
        given = [key for key in keys if getattr(self, key)]
        if self.network == "existing" and (missing := [key for key in keys if key not in given]):
            yield ConfigError("network", self.network, f"needs {', '.join(missing)} too")
        if self.network != "existing" and given:
            yield ConfigError(given[0], getattr(self, given[0]), "is used with network=existing only")
        if len(self.availability_zones) != len(self.subnet_ids):
            yield ConfigError(
                "availability_zones", ",".join(self.availability_zones), "name one for each of subnet_ids"
            )

    @classmethod
    def from_context(cls, context: Mapping[str, object]) -> Self:
        """Read CDK's context; keys with a colon, a slash or an @ are the CDK's own.

        Raises `ConfigError` for the first key that is unknown or has a value that cannot be used.
        """
        own = {key: value for key, value in context.items() if not re.search(r"[:/@]", key)}
        for key in own.keys() - cls.model_fields.keys():
            if key in _NOT_SUPPORTED:
                raise ConfigError(key, own[key], _NOT_SUPPORTED[key])
            near = difflib.get_close_matches(key, cls.model_fields, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(cls.model_fields)}"
            raise ConfigError(key, own[key], f"there is no such key; {hint}")
        try:
            return cls.model_validate({key: value for key, value in own.items() if value not in ("", None)})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            if isinstance(cause := first.get("ctx", {}).get("error"), ConfigError):
                raise cause from None
            key = str(first["loc"][0])
            raise ConfigError(key, own.get(key), _remedy(first)) from None


def _remedy(error: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    if error["type"] == "value_error":  # raised by a validator of ours, in our words
        return str(error["ctx"]["error"])
    return str(error["msg"]).replace("Input should be", "must be").replace("String should match pattern", "must match")
