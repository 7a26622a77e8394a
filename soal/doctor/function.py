"""Findings about a deployed function: its configuration and its image."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from handler.input_errors import InputError
from handler.redaction.redact import Redactor
from handler.settings import read_settings
from soal.doctor.buckets import examine_checkpoints, examine_entry_point, examine_store
from soal.doctor.deployed import (
    DeployedFunction,
    command,
    examine_events,
    look,
    look_for,
    not_examined,
    split_qualifier,
)
from soal.doctor.finding import Finding, finding
from soal.doctor.rights import examine_rights
from soal.doctor.stack import examine_alarms, examine_topic, stack_of
from soal.doctor.variables import examine_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from handler.settings import HandlerSettings
    from safewriter.objects import Location

_TIMEOUT_MIN_S: Final = 60
_MEMORY_MIN_MB: Final = 1024
_MEMORY_GOOD_MB: Final = 1769
_STORAGE_GOOD_MB: Final = 1024
_DAY_S: Final = 86_400
_MANAGED: Final = "LambdaManagedInstancesCapacityProviderConfig"
_COMMAND: Final = "handler.app.lambda_handler"
_DURABLE_COMMAND: Final = "handler.functions.durable.lambda_handler"
# Paths inside the function's sandbox: they say nothing on this machine.
_ITS_OWN: Final = ("SOAL_HOME", "JAVA_HOME", "TMPDIR")
_ECR: Final = re.compile(r"(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.[^/]+/([^@:]+)(?:@(sha256:[0-9a-f]{64})|:(.+))")
_NO_IMAGE: Final = ("ImageNotFoundException", "RepositoryNotFoundException")


def examine_function(name: str, client: Callable[[str], Any], tables: Sequence[Location] = ()) -> Iterator[Finding]:
    """Examine a function with the caller's credentials, cheap checks first. `client` returns a client for a service.

    `tables` are the tables that jobs write; the doctor simulates the roles' permissions on them.
    """
    function = DeployedFunction(name, client)
    if not (yield from look_for("function", lambda: _is_there(function), odd="fail")):
        return
    yield from look("function", lambda: iter((_state(function),)))
    yield from look("size", lambda: _size(function))
    yield from look("capacity provider", lambda: _instances(function))
    yield from look("image", lambda: _image(function))
    settings = yield from look_for("environment", lambda: _environment(function))
    yield from look("concurrency", lambda: _concurrency(function))
    yield from examine_events(function)
    stack = yield from look_for("stack", lambda: stack_of(function))
    if settings is not None:
        yield from _buckets(function, settings)
        yield from look("role", lambda: examine_rights(function, settings, stack, tables))
    if stack is not None:
        yield from look("alarm topic", lambda: examine_topic(client("sns"), stack))
        yield from look("alarms", lambda: examine_alarms(client("cloudwatch"), stack))


def _is_there(function: DeployedFunction) -> Generator[Finding, None, bool]:
    """Fetch the function; return whether it exists and can be examined."""
    try:
        yield Finding("credentials", "ok", f"{function.client('sts').get_caller_identity()['Arn']}")
    except (BotoCoreError, ClientError) as error:
        yield Finding(
            "credentials", "fail", str(error), "set AWS_PROFILE and AWS_REGION; without a profile: aws configure"
        )
        return False
    try:
        function.name = _as_invoked(function.client("lambda"), function.name)
    except (BotoCoreError, ClientError) as error:
        function.is_alias_known = False
        why = f"{error}; so events and queues, whose settings it may hold, were not examined"
        yield not_examined("alias", why, f"name it, {function.name}:ALIAS; or allow lambda:ListAliases, and try again")
    try:
        answer = function.client("lambda").get_function(FunctionName=function.name)
    except (BotoCoreError, ClientError) as error:
        yield Finding("function", "fail", str(error), "aws lambda list-functions --query 'Functions[].FunctionName'")
        return False
    function.configuration, function.code = dict(answer["Configuration"]), dict(answer["Code"])
    return True


def _as_invoked(lambda_: Any, name: str) -> str:  # noqa: ANN401 - a boto3 client
    """Return the name with its only alias, if there is exactly one: the alias holds the event destination."""
    if split_qualifier(name)[1] is not None:
        return name
    try:
        aliases = lambda_.list_aliases(FunctionName=name)["Aliases"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        return name  # the next request tells that there is no such function
    return f"{name}:{aliases[0]['Name']}" if len(aliases) == 1 else name


def _state(function: DeployedFunction) -> Finding:
    state, update = (function.configuration.get(key, "Active") for key in ("State", "LastUpdateStatus"))
    is_well = state in ("Active", "Inactive") and update in ("Active", "Successful")
    reason = function.configuration.get("StateReason") or function.configuration.get("LastUpdateStatusReason") or ""
    detail = f"{function.configuration['FunctionArn']}, {state}" + (f": {reason}" if reason and not is_well else "")
    return finding("function", detail, f"aws lambda get-function --function-name {function.name}", is_well=is_well)


def _size(function: DeployedFunction) -> Iterator[Finding]:
    configuration = function.configuration
    timeout_s, memory_mb = int(configuration["Timeout"]), int(configuration["MemorySize"])
    storage_mb = int(configuration.get("EphemeralStorage", {}).get("Size", 512))
    reason = "Spark's start alone takes seconds, and a quarter of the time is kept for settling"
    is_long = timeout_s >= _TIMEOUT_MIN_S
    detail = f"{timeout_s} s" + ("" if is_long else f": {reason}")
    yield finding("timeout", detail, function.update("--timeout 900"), is_well=is_long)
    if memory_mb < _MEMORY_MIN_MB:
        detail = f"{memory_mb} MB: Spark does not start below {_MEMORY_MIN_MB} MB"
        yield Finding("memory", "fail", detail, function.update("--memory-size 3008"))
    elif memory_mb < _MEMORY_GOOD_MB:
        detail = f"{memory_mb} MB are less than one processor, which {_MEMORY_GOOD_MB} MB give"
        yield Finding("memory", "warn", detail, function.update("--memory-size 3008"))
    else:
        yield Finding("memory", "ok", f"{memory_mb} MB")
    if storage_mb < _STORAGE_GOOD_MB:
        detail = f"{storage_mb} MB: shuffles, spills and parts of uploads lie in /tmp"
        yield Finding("storage", "warn", detail, function.update("--ephemeral-storage Size=2048"))
    else:
        yield Finding("storage", "ok", f"{storage_mb} MB")


def _instances(function: DeployedFunction) -> Iterator[Finding]:
    """Yield a finding about a function on Managed Instances: its handler starts only where events come one by one."""
    config = function.configuration.get("CapacityProviderConfig", {}).get(_MANAGED)
    if config is not None:
        number = config.get("PerExecutionEnvironmentMaxConcurrency")
        arn = config["CapacityProviderArn"]
        detail = f"{arn}, {number or 'sixteen for each processor'} at once in an environment"
        setting = json.dumps({_MANAGED: {"CapacityProviderArn": arn, "PerExecutionEnvironmentMaxConcurrency": 1}})
        publish = command("lambda", "publish-version", function_name=function.plain_name)
        remedy = f"{function.update(f'--capacity-provider-config {shlex.quote(setting)}')}; {publish}"
        yield finding("capacity provider", detail, remedy, is_well=number == 1)


def _image(function: DeployedFunction) -> Iterator[Finding]:
    if function.configuration.get("PackageType") != "Image":
        yield Finding("image", "fail", "the function does not run from an image", "cdk deploy makes one that does")
        return
    uri = str(function.code.get("ResolvedImageUri") or function.code.get("ImageUri"))
    command = function.configuration.get("ImageConfigResponse", {}).get("ImageConfig", {}).get("Command") or [_COMMAND]
    handler = _DURABLE_COMMAND if function.is_durable else _COMMAND
    if command != [handler]:
        remedy = function.update(f"--image-config Command={handler}")
        yield Finding("command", "fail", f"runs {' '.join(command)}", remedy)
    parts = _ECR.fullmatch(uri)
    if parts is None:
        yield Finding("image", "warn", f"{uri} is not in a private ECR repository, so it cannot be examined")
        return
    account, _, repository, digest, tag = parts.groups()
    image = {"imageDigest": digest} if digest else {"imageTag": tag}
    try:
        function.client("ecr").describe_images(registryId=account, repositoryName=repository, imageIds=[image])
    except ClientError as error:
        if error.response["Error"]["Code"] not in _NO_IMAGE:
            raise
        detail = f"{uri} is no longer in its repository: the function works only until Lambda drops its copy"
        yield Finding("image", "fail", detail, "cdk deploy, and keep images that functions use (ECR's lifecycle)")
        return
    yield Finding("image", "ok", uri)


def _environment(function: DeployedFunction) -> Generator[Finding, None, HandlerSettings | None]:
    variables = function.configuration.get("Environment", {}).get("Variables", {})
    environment = {name: value for name, value in variables.items() if name not in _ITS_OWN}
    bare = sorted(name for name, value in environment.items() if Redactor.of_environment({name: value}).known)
    if bare:
        remedy = "put it into Secrets Manager and name it in the stack's context key secrets (SOAL_SECRETS)"
        yield Finding("secrets", "warn", f"everyone who can see the function can read {', '.join(bare)}", remedy)
    yield from examine_variables(variables)
    if any(name.startswith("AWS_ENDPOINT_URL") for name in environment):
        yield Finding("endpoint", "warn", "AWS_ENDPOINT_URL… is set: all requests go there", "unset it for Amazon's S3")
    try:
        settings = read_settings(environment)
    except InputError as error:
        # The message may quote a value that is a secret in another variable.
        message = Redactor.of_environment(environment)(str(error))
        yield Finding("environment", "fail", message, function.correct(error.field))
        return None
    if settings.errors == "return":
        detail = "SOAL_ERRORS=return: a failed run looks like a success to alarms, retries and destinations"
        yield Finding("environment", "warn", detail, "unset SOAL_ERRORS, unless a caller reads `state`")
    else:
        yield Finding("environment", "ok", f"checkpoints in {settings.guard.checkpoint_bucket}")
    return settings


def _concurrency(function: DeployedFunction) -> Iterator[Finding]:
    name = function.plain_name
    reserved = function.client("lambda").get_function_concurrency(FunctionName=name)
    number = reserved.get("ReservedConcurrentExecutions")
    detail = "as many at once as the account allows" if number is None else f"{number} at once"
    yield finding(
        "concurrency", detail, f"aws lambda delete-function-concurrency --function-name {name}", is_well=number != 0
    )


def _buckets(function: DeployedFunction, settings: HandlerSettings) -> Iterator[Finding]:
    s3 = function.client("s3")
    location = settings.guard.checkpoint_bucket
    days = None if function.replay_s is None else -(-function.replay_s // _DAY_S)
    yield from look(
        "retention", lambda: examine_checkpoints(s3, location, days, int(function.configuration["Timeout"]))
    )
    yield from look("script", lambda: examine_entry_point(s3, settings.script))
    yield from look("S3 endpoint", lambda: examine_store(s3, str(location)))
