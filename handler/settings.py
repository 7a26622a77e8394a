"""The function's environment as one validated value."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from handler.input_errors import InputError, validated
from handler.module_names import check_file
from handler.request.turns import DeclaredTurn, declared_turns
from handler.secrets import SecretReference, parse_references
from handler.spark.installation import default_home
from handler.spark.missing_dependencies import Variant
from handler.spark_settings.checked import Permit, check_own_conf
from safewriter.errors import SettingError
from safewriter.objects import Location
from safewriter.parsing import parsed
from safewriter.settings import Settings as GuardSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CONTINUE_MAX", "HandlerSettings", "read_settings"]

CONTINUE_MAX: Final = 1000
"""The most continuations of a run that the function's owner may allow."""


def _url(value: str) -> str:
    if not value.startswith(("http://", "https://")):
        raise ValueError("must be a URL that begins with http:// or https://")
    return value


def _home(value: Path) -> Path:
    if not (value / "jars").is_dir():
        raise ValueError(f"{value} has no directory 'jars'; run scripts/setup, or leave the variable out")
    return value


def _directory(value: Path) -> Path:
    if not value.is_dir():
        raise ValueError(f"{value} is no directory; leave the variable out for /tmp")
    return value


def _java_home(value: Path) -> Path:
    if not (value / "bin" / "java").is_file():
        raise ValueError(f"{value} has no bin/java; set it to a Java 17, or leave the variable out")
    return value


def _json(value: object) -> object:
    try:
        return parsed(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError('must be a JSON object of strings, as {"spark.sql.shuffle.partitions": "8"}') from None


def _paths(value: object) -> object:
    return tuple(Path(path) for path in value.split(":") if path) if isinstance(value, str) else value


def _permits(value: object) -> object:
    return tuple(Permit.parse(word) for word in value.split()) if isinstance(value, str) else value


def script_location(value: str) -> Location:
    """Parse the S3 path of a Python script; `ValueError` describes the problem."""
    location = Location.parse(value)
    name = location.name
    if not name.endswith(".py") or name == ".py":
        raise ValueError(f"{value!r} does not name a Python script (…/name.py)")
    if not value.isprintable():
        raise ValueError(f"{value!r} holds a control character")
    check_file(name)  # it runs as __main__, but Python searches its folder first
    return location


class HandlerSettings(BaseModel):
    """The handler's settings from the function's environment; other variables are the job's own."""

    model_config = ConfigDict(frozen=True, extra="ignore", arbitrary_types_allowed=True)

    guard: GuardSettings
    soal_home: Annotated[Path, AfterValidator(_home)] = Field(alias="SOAL_HOME", default_factory=default_home)
    java_home: Annotated[Path, AfterValidator(_java_home)] | None = Field(alias="JAVA_HOME", default=None)
    entry_point: str | None = Field(alias="SOAL_ENTRY_POINT", default=None)
    script_bucket: str | None = Field(alias="SCRIPT_BUCKET", default=None)
    spark_script: str | None = Field(alias="SPARK_SCRIPT", default=None)
    errors: Literal["raise", "return"] = Field(alias="SOAL_ERRORS", default="raise")
    accept_changed_script: Literal["on", "off"] = Field(alias="SOAL_ACCEPT_CHANGED_SCRIPT", default="off")
    """`acceptChangedScript` for all events; the event of another service has no field for it."""
    continue_max: Annotated[int, Field(ge=0, le=CONTINUE_MAX)] = Field(alias="SOAL_CONTINUE_MAX", default=0)
    conf: Annotated[dict[str, str], BeforeValidator(_json)] = Field(alias="SOAL_CONF", default={})
    """Spark settings of the function's own; an event changes none of them."""
    conf_allow: Annotated[tuple[Permit, ...], BeforeValidator(_permits)] = Field(alias="SOAL_CONF_ALLOW", default=())
    """Settings that an event may bring besides `handler.spark_settings.allowed`."""
    own_directories: Annotated[tuple[Path, ...], BeforeValidator(_paths)] = Field(
        alias="SOAL_OWN_DIRECTORIES", default=()
    )
    """Directories that belong to this function alone: the handler empties them between jobs. The image names /tmp and
    /dev/shm.
    """
    variant: Variant = Field(alias="SOAL_IMAGE_VARIANT", default="slim")
    """The image's variant, which it names itself."""
    jit: Literal["auto", "c1", "full"] = Field(alias="SOAL_JIT", default="auto")
    reuse: Literal["on", "off"] = Field(alias="SOAL_REUSE", default="on")
    """Whether the JVM of a job that ended well runs the next one."""
    event_logs: Literal["on", "off"] = Field(alias="SOAL_EVENT_LOGS", default="off")
    """Whether Spark's event logs are kept in the checkpoint bucket."""
    timeout_s: Annotated[int, Field(ge=1)] = Field(alias="SOAL_TIMEOUT_S", default=900)
    """The function's timeout, which the handler needs before the first event."""
    initialization: str | None = Field(alias="AWS_LAMBDA_INITIALIZATION_TYPE", default=None)
    events_at_once: Annotated[int, Field(ge=1)] | None = Field(alias="AWS_LAMBDA_MAX_CONCURRENCY", default=None)
    """How many events this environment gets at once; Lambda tells it on Managed Instances only."""
    secrets: Annotated[dict[str, SecretReference], BeforeValidator(parse_references)] = Field(
        alias="SOAL_SECRETS", default_factory=dict
    )
    turns: Annotated[tuple[DeclaredTurn, ...], BeforeValidator(declared_turns)] = Field(alias="SOAL_TURNS", default=())
    """The turns of the jobs at their locks; an event names one of them at most."""
    endpoint: Annotated[str, AfterValidator(_url)] | None = Field(alias="AWS_ENDPOINT_URL_S3", default=None)
    general_endpoint: Annotated[str, AfterValidator(_url)] | None = Field(alias="AWS_ENDPOINT_URL", default=None)
    region: str | None = Field(alias="AWS_REGION", default=None)
    function_name: str | None = Field(alias="AWS_LAMBDA_FUNCTION_NAME", default=None)
    memory_kills: Path | None = Field(alias="SOAL_MEMORY_KILLS", default=None)
    """The local emulator's counter of the processes that it has killed for memory."""
    tmp: Annotated[Path, AfterValidator(_directory)] = Field(alias="TMPDIR", default=Path("/tmp"))  # noqa: S108 - the one place on Lambda that can be written

    @field_validator("conf")
    @classmethod
    def _free(cls, conf: dict[str, str]) -> dict[str, str]:
        check_own_conf(conf, "SOAL_CONF")
        return conf

    @model_validator(mode="after")
    def _one_script(self) -> Self:
        if self.entry_point is not None and self.spark_script is not None:
            raise InputError("SOAL_ENTRY_POINT", "is set beside SPARK_SCRIPT; set one of the two")
        if self.spark_script is not None and not self.script_bucket:
            raise InputError("SCRIPT_BUCKET", "is missing; SPARK_SCRIPT needs the bucket (or bucket/prefix) it is in")
        variable = "SCRIPT_BUCKET"
        try:
            self.script_folder  # noqa: B018 - parsed to be refused here
            variable = "SOAL_ENTRY_POINT" if self.entry_point is not None else "SPARK_SCRIPT"
            self.script  # noqa: B018 - as above
            variable = "SOAL_TURNS"
            for turn in self.turns:
                self._at(turn.script)
        except ValueError as error:
            raise InputError(variable, str(error)) from None
        return self

    @property
    def owned_settings(self) -> frozenset[str]:
        """The names of the Spark settings that the owner has set, here or as a secret."""
        return frozenset({*self.conf, *(name for name in self.secrets if name.startswith("spark."))})

    @property
    def script(self) -> Location | None:
        """The script that runs for events that do not name one themselves."""
        if self.entry_point is not None:
            return script_location(self.entry_point)
        if self.spark_script is not None:
            return self._at(self.spark_script)
        return None

    def turns_of(self, script: Location) -> tuple[DeclaredTurn, ...]:
        """Return the turns that are declared for a script."""
        return tuple(turn for turn in self.turns if self._at(turn.script) == script)

    def _at(self, script: str) -> Location:
        if "://" in script:
            return script_location(script)
        if self.script_folder is None:
            raise ValueError(f"{script!r} is a key below SCRIPT_BUCKET, which is not set; name s3://bucket/key.py")
        return script_location(f"{self.script_folder}/{script.lstrip('/')}")

    @property
    def script_folder(self) -> Location | None:
        """The folder of every script and Python file that an event names; None: any place that the role can read."""
        if not self.script_bucket:
            return None
        return Location.parse(f"s3://{self.script_bucket.removeprefix('s3://').strip('/')}")

    @property
    def is_managed(self) -> bool:
        """Whether this environment is on Managed Instances: nothing freezes it between events, and no event waits for
        its initialisation.
        """
        return self.events_at_once is not None

    @property
    def s3_endpoint(self) -> str | None:
        """The endpoint that boto3 and S3A both talk to, if it is not Amazon's own."""
        return self.endpoint or self.general_endpoint


def read_settings(environment: Mapping[str, str]) -> HandlerSettings:
    """Read the environment; `InputError` names the variable. An empty variable counts as not set."""
    values = {name: value for name, value in environment.items() if value != ""}
    try:
        guard = GuardSettings.from_environment(values)
    except SettingError as error:
        raise InputError(error.name, error.problem) from None
    return validated(HandlerSettings, {**values, "guard": guard}, depth=0)  # a function has as many variables as it has
