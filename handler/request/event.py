"""Turn a delivered event into a request: the script, its arguments and settings, the run key.

Accepted forms (docs/reference/event):
- a job document with the field names of EMR Serverless' StartJobRun, flat or under `jobDriver.sparkSubmit`;
- the S3 path of a script alone;
- an event of a service (see `trigger`), or any other object that is not empty, where the function's environment names
  the script. A message of SQS or SNS whose text is a job document is that job.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from handler.input_errors import InputError, described, problem_of, validated
from handler.module_names import stored_name
from handler.request.event_fields import LABEL, PY_FILES_MAX, FlatDocument, NestedDocument, py_file
from handler.request.identity import DISTINCTIVE, is_document
from handler.request.submit_parameters import parse_submit_parameters
from handler.request.trigger import Trigger, recognise
from handler.request.turns import turn_of
from handler.settings import script_location
from handler.spark_settings.checked import check_conf
from safewriter.objects import Location

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handler.request.event_fields import Common
    from handler.request.submit_parameters import SubmitParameters
    from handler.settings import HandlerSettings
    from safewriter.coordination import Configuration

__all__ = ["Request", "parse_event"]

# Linux allows 2 MiB for all arguments and the environment. The arguments are passed twice.
_ARGUMENTS_MAX_BYTES: Final = 262_144
_CLOUD_ONLY: Final = ("application_id", "execution_role_arn", "execution_timeout_minutes", "mode", "retry_policy")
_OVERRIDES: Final = "configurationOverrides"
_ANONYMOUS: Final = (
    "the event has no identity, so its run is named by the request: only Lambda's own retry of an asynchronous event"
    " repeats that, and any other writes again; a job document with a clientToken has one"
)
_FIELDS_BY_LOWER: Final = {name.lower(): name for name in DISTINCTIVE}


@dataclass(frozen=True, slots=True)
class Request:
    """The checked request of an event. `trigger` is set if the job receives the event itself."""

    entry_point: Location
    arguments: tuple[str, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict)
    py_files: tuple[Location, ...] = ()
    client_token: str | None = None
    event_key: str | None = None
    name: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    accept_changed_script: bool = False
    coordination: Configuration | None = None
    trigger: Trigger | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Defaults:
    """Settings that other fields of the event override, and the field that holds them."""

    conf: Mapping[str, str]
    path: str


def parse_event(event: object, settings: HandlerSettings) -> Request:
    """Turn an event into a request; `InputError` names the wrong field and the remedy."""
    if isinstance(event, str):
        return _flat(validated(FlatDocument, {"entryPoint": event}), settings, "")
    if not isinstance(event, dict):
        raise InputError("event", f"must be a job document or the S3 path of a script, not {described(event)}")
    if is_document(event):
        return _document(event, settings, "")
    trigger = recognise(event)
    if trigger is not None and trigger.document is not None and is_document(trigger.document):
        request = _document(trigger.document, settings, trigger.document_path)
        return replace(request, event_key=trigger.run_key(settings.function_name))
    if trigger is not None and trigger.document is not None:
        _check_near_miss(trigger.document, trigger.document_path)
    _check_near_miss(event, "")
    if not event:
        raise InputError(
            "entryPoint",
            'is missing in an empty event, which starts nothing; add it, or send {"entryPointArguments": []} for the'
            " script that the function names",
        )
    return _triggered(trigger or Trigger(event, None), settings)


def _check_near_miss(event: Mapping[str, Any], path: str) -> None:
    """Refuse a job document whose only distinctive field is misspelt: it must not pass for another kind of event."""
    for key in event:
        right = _FIELDS_BY_LOWER.get(key.lower().replace("_", "").replace("-", ""))
        if right is not None and right != key:
            raise InputError(_below(path, key), f"is not a known field; did you mean {right}?")


def _document(event: Mapping[str, Any], settings: HandlerSettings, prefix: str) -> Request:
    if "jobDriver" in event:
        return _nested(validated(NestedDocument, event, prefix=prefix), settings, prefix)
    return _flat(validated(FlatDocument, event, prefix=prefix), settings, prefix)


def _nested(document: NestedDocument, settings: HandlerSettings, prefix: str) -> Request:
    submit, overrides = document.job_driver.spark_submit, document.configuration_overrides
    request = _request(
        document,
        settings,
        script_location(submit.entry_point),
        arguments=submit.entry_point_arguments,
        parameters=submit.spark_submit_parameters,
        path=f"{prefix}.jobDriver.sparkSubmit".lstrip("."),
        defaults=_Defaults(
            next((one.properties for one in overrides.application_configuration), {}), _below(prefix, _OVERRIDES)
        ),
    )
    if overrides.monitoring_configuration is None:
        return request
    ignored = f"{_OVERRIDES}.monitoringConfiguration was not used: the job's log goes to CloudWatch"
    return replace(request, warnings=(*request.warnings, ignored))


def _flat(document: FlatDocument, settings: HandlerSettings, prefix: str) -> Request:
    if document.entry_point is not None and document.script is not None:
        raise InputError(_below(prefix, "script"), "is only another name for entryPoint, which is there too; keep one")
    script = document.entry_point or document.script
    entry_point = script_location(script) if script is not None else settings.script
    if entry_point is None:
        raise InputError(_below(prefix, "entryPoint"), "is missing; add it")
    return _request(
        document,
        settings,
        entry_point,
        arguments=document.entry_point_arguments,
        parameters=document.spark_submit_parameters,
        path=prefix,
        conf=document.conf,
        py_files=document.py_files,
    )


def _request(
    common: Common,
    settings: HandlerSettings,
    entry_point: Location,
    *,
    arguments: tuple[str, ...],
    parameters: str,
    path: str,
    conf: Mapping[str, str] | None = None,
    defaults: _Defaults | None = None,
    py_files: tuple[str, ...] = (),
) -> Request:
    if sum(len(argument.encode()) for argument in arguments) > _ARGUMENTS_MAX_BYTES:
        raise InputError(
            _below(path, "entryPointArguments"),
            f"have more than {_ARGUMENTS_MAX_BYTES} bytes together; put them in an object on S3",
        )
    submit = parse_submit_parameters(parameters, _below(path, "sparkSubmitParameters"))
    if (count := len(py_files) + len(submit.py_files)) > PY_FILES_MAX:
        text = f"has {count} files with those of --py-files; {PY_FILES_MAX} are allowed, put more into a zip"
        raise InputError(_below(path, "pyFiles"), text)
    files = tuple(Location.parse(uri) for uri in (*py_files, *(_in_parameters(uri, path) for uri in submit.py_files)))
    _check_places(files, entry_point, settings, path)
    _check_py_files(files, entry_point, path)
    return Request(
        entry_point=entry_point,
        arguments=arguments,
        conf=_conf(dict(conf or {}), submit, defaults or _Defaults({}, _OVERRIDES), settings, path),
        py_files=files,
        client_token=common.client_token,
        name=common.name or _name(submit.name, path),
        tags=common.tags,
        accept_changed_script=common.accept_changed_script,
        coordination=turn_of(
            entry_point, settings.turns_of(entry_point), common.coordination, _below(path, "coordination")
        ),
        warnings=tuple(
            f"{to_camel(name)} has a meaning for EMR Serverless only; it was not used"
            for name in _CLOUD_ONLY
            if getattr(common, name) is not None
        ),
    )


def _conf(
    in_event: Mapping[str, str],
    submit: SubmitParameters,
    defaults: _Defaults,
    settings: HandlerSettings,
    path: str,
) -> dict[str, str]:
    in_parameters, wrong = submit.conf, [*submit.wrong]
    for place, conf in (
        (_below(path, "conf"), in_event),
        (_below(path, "sparkSubmitParameters"), in_parameters),
        (defaults.path, defaults.conf),
    ):
        try:
            check_conf(conf, place, permits=settings.conf_allow, owned=settings.owned_settings, region=settings.region)
        except InputError as error:
            wrong.append(error)
    if doubled := sorted(in_event.keys() & in_parameters.keys()):
        twice = f"sets {doubled[0]}, which conf sets too; keep one of the two"
        wrong.append(InputError(_below(path, "sparkSubmitParameters"), twice))
    if wrong:
        raise InputError.of(wrong)
    return {**defaults.conf, **in_event, **in_parameters}


def _in_parameters(uri: str, path: str) -> str:
    try:
        return py_file(uri)
    except ValueError as error:
        raise InputError(_below(path, "sparkSubmitParameters"), f"--py-files: {error}") from None


def _name(name: str | None, path: str) -> str | None:
    try:
        return None if name is None else LABEL.validate_python(name)
    except ValidationError as error:
        problem = problem_of(error)
        raise InputError(_below(path, "sparkSubmitParameters"), f"--name {problem}") from None


def _check_places(files: tuple[Location, ...], entry_point: Location, settings: HandlerSettings, path: str) -> None:
    """Check that the code, which runs with the function's role, is in the owner's folder of scripts."""
    folder = settings.script_folder
    if folder is None:
        return
    for name, locations in (("entryPoint", (entry_point,)), ("pyFiles", files)):
        for location in locations:
            if location != settings.script and not location.is_below(folder):
                raise InputError(
                    _below(path, name),
                    f"{location} is not below {folder}, where this function's scripts lie; put it there",
                )


def _check_py_files(files: tuple[Location, ...], entry_point: Location, path: str) -> None:
    """Check that the names of Python files differ, since they are copied into one directory."""
    names = [stored_name(location.name) for location in (entry_point, *files)]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InputError(_below(path, "pyFiles"), f"two files are called {name}; rename one, Python sees one name")


def _triggered(trigger: Trigger, settings: HandlerSettings) -> Request:
    if settings.script is None:
        raise InputError(
            "entryPoint",
            "is missing, and the function names no script for events like this one; add it to the event, or set"
            " SOAL_ENTRY_POINT=s3://bucket/script.py for the function",
        )
    return Request(
        entry_point=settings.script,
        event_key=trigger.run_key(settings.function_name),
        trigger=trigger,
        coordination=turn_of(settings.script, settings.turns_of(settings.script), None, "coordination"),
        warnings=() if trigger.identity is not None else (_ANONYMOUS,),
    )


def _below(prefix: str, name: str) -> str:
    return f"{prefix}.{name}".lstrip(".")
