"""A job document as an event holds it: the fields of EMR Serverless' StartJobRun, each with its allowed values."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from unicodedata import category

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, TypeAdapter
from pydantic.alias_generators import to_camel

from handler.input_errors import described
from handler.module_names import NATIVE, check_file, stored_name
from handler.settings import script_location
from safewriter.objects import Location

__all__ = ["LABEL", "PY_FILES_MAX", "Common", "FlatDocument", "NestedDocument", "Token", "py_file"]

# Linux allows 128 KiB for an argument of execve, and 2 MiB for all with the environment. They are passed twice.
_ARGUMENT_MAX_BYTES: Final = 65_536
_ARGUMENTS_MAX: Final = 200
_FILE_NAME_MAX_BYTES: Final = 255
PY_FILES_MAX: Final = 50
_PY_FILE_SUFFIXES: Final = (".py", ".zip", ".egg", ".whl")
_ANY_PLATFORM: Final = "-any.whl"


def _script(value: str) -> str:
    _check_file_name(script_location(value))
    return value


def py_file(value: str) -> str:
    """Return the value if it is the S3 path of a Python file; else raise `ValueError` with the problem."""
    location = Location.parse(value)
    name = location.name
    lower = name.lower()
    if not lower.endswith(_PY_FILE_SUFFIXES):
        raise ValueError(f"{value!r} is not a .py, .zip, .egg or .whl file on S3")
    if lower.endswith(".whl") and not lower.endswith(_ANY_PLATFORM):
        raise ValueError(f"{value!r} is a wheel with {NATIVE}")
    if "," in name or not value.isprintable():
        raise ValueError(f"{value!r} has a comma or a control character in its name")
    _check_file_name(location)
    check_file(stored_name(name))
    return value


def _check_file_name(location: Location) -> None:
    size = len(stored_name(location.name).encode())
    if size > _FILE_NAME_MAX_BYTES:
        raise ValueError(f"the file's name has {size} bytes; {_FILE_NAME_MAX_BYTES} are allowed")


def _argument(value: str) -> str:
    """Check an argument: of control characters, only tabs and line ends are allowed, as in JSON or a query."""
    if bad := next((letter for letter in value if category(letter) in ("Cc", "Cs") and letter not in "\t\n\r"), None):
        raise ValueError(f"holds the control character {bad!r}; tabs and line ends are allowed")
    if (size := len(value.encode())) > _ARGUMENT_MAX_BYTES:
        raise ValueError(f"has {size} bytes; {_ARGUMENT_MAX_BYTES} are allowed, put a longer text in an object on S3")
    return value


def _given(value: object) -> object:
    """Refuse null: a workflow that names its runs and takes a caller's document over that would lose the name, and each
    attempt would be a run of its own, which writes again.
    """
    if value is None:
        raise ValueError("is null, which names no run; give the run's key, or leave the field out")
    return value


def _label(value: str) -> str:
    if not value.isprintable():
        raise ValueError(f"holds a control character: {described(value)}")
    if "${" in value:
        raise ValueError("holds ${, which Spark replaces by variables of the function; write the text itself")
    return value


_S3Script = Annotated[str, StringConstraints(max_length=1100), AfterValidator(_script)]
_S3PyFile = Annotated[str, StringConstraints(max_length=1100), AfterValidator(py_file)]
_Argument = Annotated[str, AfterValidator(_argument)]
_Arguments = Annotated[tuple[_Argument, ...], Field(max_length=_ARGUMENTS_MAX, strict=False)]
_Label = Annotated[str, StringConstraints(min_length=1, max_length=256), AfterValidator(_label)]
LABEL: Final = TypeAdapter(_Label)
"""A printable name of a run."""
_TagKey = Annotated[str, StringConstraints(min_length=1, max_length=128), AfterValidator(_label)]
_TagValue = Annotated[str, StringConstraints(max_length=256), AfterValidator(_label)]
_Tags = Annotated[dict[_TagKey, _TagValue], Field(max_length=50)]
_Parameters = Annotated[str, StringConstraints(max_length=102_400)]
# As in EMR Serverless, so that a job can move there, and with the colons of a time, which EventBridge Scheduler writes.
# All run keys have this form, also those of triggers and request ids, except that of a stream
# (`safewriter.identity.Run.of_stream`), which an event cannot name.
# The longest name of an execution of Step Functions, which the stack's machine gives as a token, has 80 characters.
Token = Annotated[str, StringConstraints(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9._:-]+$")]
_STRICT: Final = ConfigDict(frozen=True, extra="forbid", strict=True, alias_generator=to_camel)


class Common(BaseModel):
    """Fields of both forms."""

    model_config = _STRICT

    client_token: Annotated[Token | None, BeforeValidator(_given)] = None
    """The run key. The same token with the same job is a retry: it skips committed writes. It may be missing, but not
    be null.
    """
    name: _Label | None = None
    """A name for people; the result shows it."""
    tags: _Tags = {}
    """Labels that `soal graduate` hands to EMR Serverless; the handler does not use them."""
    accept_changed_script: bool = False
    """`true`: the script, or a Python file, may differ from that of the run's earlier attempts. Their committed writes
    are skipped, and the rest is the new script's. Every later event of the run needs this field.
    """
    coordination: dict[str, str] | None = None
    """The job's turn, one of those that the function declares for the script (`SOAL_TURNS`): `lock.name` and `name`,
    with or without the prefix `job.coordinator.`. Other keys may only say what is declared. The handler takes the turn
    before the job, and gives it back once the job's writes are settled.
    """
    application_id: str | None = None
    """EMR Serverless only; ignored with a warning, as are `executionRoleArn`, `executionTimeoutMinutes`, `mode` and
    `retryPolicy`.
    """
    execution_role_arn: str | None = None
    """The function has its own."""
    execution_timeout_minutes: int | None = None
    """The function's timeout ends a job."""
    mode: Literal["BATCH", "STREAMING"] | None = None
    """A function runs both."""
    retry_policy: dict[str, Any] | None = None
    """The function's `retry_attempts`, or whoever invokes it, retries."""


class _SparkSubmit(BaseModel):
    model_config = _STRICT

    entry_point: _S3Script
    entry_point_arguments: _Arguments = ()
    spark_submit_parameters: _Parameters = ""


class _JobDriver(BaseModel):
    model_config = _STRICT

    spark_submit: _SparkSubmit


class _Application(BaseModel):
    model_config = _STRICT

    classification: Literal["spark-defaults"]
    properties: dict[str, str] = {}


class _Overrides(BaseModel):
    model_config = _STRICT

    application_configuration: Annotated[tuple[_Application, ...], Field(max_length=1, strict=False)] = ()
    monitoring_configuration: dict[str, Any] | None = None


class NestedDocument(Common):
    """The form of StartJobRun itself."""

    job_driver: _JobDriver
    configuration_overrides: _Overrides = _Overrides()
    """The properties of `spark-defaults` are settings as in `conf`; `sparkSubmitParameters` override them. Logs go to
    CloudWatch: the rest is ignored with a warning.
    """


class FlatDocument(Common):
    """The same in one level, with settings and files as fields of their own."""

    entry_point: _S3Script | None = None
    """The script, `s3://bucket/key.py`. An event without it runs the script that the function names."""
    script: _S3Script | None = None
    """Another name for `entryPoint`; one of the two."""
    entry_point_arguments: _Arguments = ()
    """The script's arguments, 64 KiB each and 256 KiB together at most."""
    spark_submit_parameters: _Parameters = ""
    """Options of spark-submit in one text: `--conf KEY=VALUE`, `--py-files`, `--name`."""
    conf: dict[str, str] = {}
    """Spark settings of the allow-list."""
    py_files: Annotated[tuple[_S3PyFile, ...], Field(max_length=PY_FILES_MAX, strict=False)] = ()
    """Python files on S3 that it imports: `.py`, `.zip`, `.egg`, or a wheel without native code (`-any.whl`)."""
