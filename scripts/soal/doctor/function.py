"""Findings about a deployed function: how it is set up, what becomes of its events, its image and its buckets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from handler.redact import Redactor
from handler.settings import read_settings
from handler.usage import UsageError
from scripts.soal.doctor.buckets import examine_checkpoints, examine_entry_point
from scripts.soal.doctor.finding import Finding, finding
from scripts.soal.doctor.store import examine_store
from scripts.soal.doctor.variables import examine_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from handler.settings import HandlerSettings

__all__ = ["examine_function"]

_TIMEOUT_MIN_S: Final = 60
_MEMORY_MIN_MB: Final = 1024
_MEMORY_GOOD_MB: Final = 1769
_STORAGE_GOOD_MB: Final = 1024
_EVENT_AGE_DEFAULT_S: Final = 21_600
_RETRIES_DEFAULT: Final = 2
_VISIBILITY_IN_TIMEOUTS: Final = 6
_QUEUE_DEFAULT_S: Final = 345_600
_DAY_S: Final = 86_400
_COMMAND: Final = "handler.app.lambda_handler"
# About the machine that the function runs on, not about this one.
_ITS_OWN: Final = ("SOAL_HOME", "JAVA_HOME", "TMPDIR")
_ECR: Final = re.compile(r"(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.[^/]+/([^@:]+)(?:@(sha256:[0-9a-f]{64})|:(.+))")
_NO_IMAGE: Final = ("ImageNotFoundException", "RepositoryNotFoundException")


@dataclass(slots=True)
class _Function:
    """A function by name or ARN, and what is known of it so far."""

    name: str
    client: Callable[[str], Any]
    configuration: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, Any] = field(default_factory=dict)
    replay_s: int = 0
    """How long after its first delivery an event can still be delivered again."""

    def update(self, option: str) -> str:
        return f"aws lambda update-function-configuration --function-name {self.configuration['FunctionName']} {option}"


def examine_function(name: str, client: Callable[[str], Any]) -> Iterator[Finding]:
    """Look at a function with the caller's credentials, the cheap things first; `client` makes one for a service."""
    function = _Function(name, client)
    try:
        yield Finding("credentials", "ok", f"{client('sts').get_caller_identity()['Arn']}")
    except (BotoCoreError, ClientError) as error:
        yield Finding("credentials", "fail", str(error), "aws configure, or set AWS_PROFILE and AWS_REGION")
        return
    function.name = name = _as_invoked(client("lambda"), name)
    try:
        answer = client("lambda").get_function(FunctionName=name)
    except (BotoCoreError, ClientError) as error:
        yield Finding("function", "fail", str(error), "aws lambda list-functions --query 'Functions[].FunctionName'")
        return
    function.configuration, function.code = answer["Configuration"], answer["Code"]
    yield _state(function)
    yield from _size(function)
    yield from _looked("image", lambda: _image(function))
    settings = yield from _environment(function)
    yield from _looked("concurrency", lambda: _concurrency(function))
    yield from _looked("asynchronous events", lambda: _asynchronous(function))
    yield from _looked("queues", lambda: _queues(function))
    if settings is not None:
        yield from _buckets(function, settings)


def _as_invoked(lambda_: Any, name: str) -> str:  # noqa: ANN401 - a boto3 client
    """Return the name with its alias, if it has one and only one: what becomes of events is a setting of the alias."""
    if _qualified(name)[2]:
        return name
    try:
        aliases = lambda_.list_aliases(FunctionName=name)["Aliases"]
    except (BotoCoreError, ClientError):
        return name
    return f"{name}:{aliases[0]['Name']}" if len(aliases) == 1 else name


def _looked(name: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Look; what may not be looked at is a warning, not the end."""
    try:
        yield from look()
    except (BotoCoreError, ClientError) as error:
        yield Finding(name, "warn", f"could not be looked at: {error}", "allow it to your own user, and look again")


def _state(function: _Function) -> Finding:
    state, update = (function.configuration.get(key, "Active") for key in ("State", "LastUpdateStatus"))
    is_well = state in ("Active", "Inactive") and update in ("Active", "Successful")
    reason = function.configuration.get("StateReason") or function.configuration.get("LastUpdateStatusReason") or ""
    detail = f"{function.configuration['FunctionArn']}, {state}" + (f": {reason}" if reason and not is_well else "")
    return finding("function", is_well, detail, f"aws lambda get-function --function-name {function.name}")


def _size(function: _Function) -> Iterator[Finding]:
    found = function.configuration
    timeout_s, memory_mb = int(found["Timeout"]), int(found["MemorySize"])
    storage_mb = int(found.get("EphemeralStorage", {}).get("Size", 512))
    why = "Spark alone starts for seconds, and a quarter of the time is kept for settling"
    is_long = timeout_s >= _TIMEOUT_MIN_S
    detail = f"{timeout_s} s" + ("" if is_long else f": {why}")
    yield finding("timeout", is_long, detail, function.update("--timeout 900"))
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


def _image(function: _Function) -> Iterator[Finding]:
    if function.configuration.get("PackageType") != "Image":
        yield Finding("image", "fail", "the function is not made of an image", "cdk deploy makes one that is")
        return
    uri = str(function.code.get("ResolvedImageUri") or function.code.get("ImageUri"))
    command = function.configuration.get("ImageConfigResponse", {}).get("ImageConfig", {}).get("Command") or [_COMMAND]
    if command != [_COMMAND]:
        remedy = function.update(f"--image-config Command={_COMMAND}")
        yield Finding("command", "fail", f"runs {' '.join(command)}", remedy)
    parts = _ECR.fullmatch(uri)
    if parts is None:
        yield Finding("image", "warn", f"{uri} is not of a private ECR repository: cannot be looked up")
        return
    account, _, repository, digest, tag = parts.groups()
    wanted = {"imageDigest": digest} if digest else {"imageTag": tag}
    try:
        function.client("ecr").describe_images(registryId=account, repositoryName=repository, imageIds=[wanted])
    except ClientError as error:
        if error.response["Error"]["Code"] not in _NO_IMAGE:
            raise
        detail = f"{uri} is no longer in its repository: the function ends with the copy that Lambda keeps"
        yield Finding("image", "fail", detail, "cdk deploy, and keep images that functions use (ECR's lifecycle)")
        return
    yield Finding("image", "ok", uri)


def _environment(function: _Function) -> Generator[Finding, None, HandlerSettings | None]:
    variables = function.configuration.get("Environment", {}).get("Variables", {})
    given = {name: value for name, value in variables.items() if name not in _ITS_OWN}
    bare = sorted(name for name, value in given.items() if Redactor.of_environment({name: value}).known)
    if bare:
        remedy = "put it into Secrets Manager and name it in the stack's context key secrets (SOAL_SECRETS)"
        yield Finding("secrets", "warn", f"{', '.join(bare)} can be read by whoever sees the function", remedy)
    yield from examine_variables(variables)
    if any(name.startswith("AWS_ENDPOINT_URL") for name in given):
        yield Finding("endpoint", "warn", "AWS_ENDPOINT_URL… is set: everything goes there", "unset it for Amazon's S3")
    try:
        settings = read_settings(given)
    except UsageError as error:
        remedy = function.update(f"--environment … with {error.field} corrected")
        yield Finding("environment", "fail", str(error), remedy)
        return None
    if settings.errors == "return":
        detail = "SOAL_ERRORS=return: a failed run looks like a success to alarms, retries and destinations"
        yield Finding("environment", "warn", detail, "unset SOAL_ERRORS, unless a caller reads `state`")
    else:
        yield Finding("environment", "ok", f"checkpoints in {settings.guard.checkpoint_bucket}")
    return settings


def _concurrency(function: _Function) -> Iterator[Finding]:
    name = function.configuration["FunctionName"]
    reserved = function.client("lambda").get_function_concurrency(FunctionName=name)
    number = reserved.get("ReservedConcurrentExecutions")
    detail = "as many at once as the account allows" if number is None else f"{number} at once"
    yield finding("concurrency", number != 0, detail, f"aws lambda delete-function-concurrency --function-name {name}")


def _asynchronous(function: _Function) -> Iterator[Finding]:
    config: Mapping[str, Any] = {}
    name, _, qualifier = _qualified(function.name)
    try:
        config = function.client("lambda").get_function_event_invoke_config(
            FunctionName=name, **({"Qualifier": qualifier} if qualifier else {})
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
    retries = config.get("MaximumRetryAttempts", _RETRIES_DEFAULT)
    age_s = config.get("MaximumEventAgeInSeconds", _EVENT_AGE_DEFAULT_S)
    destination = config.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
    function.replay_s = int(age_s)
    if destination is None:
        command = f"aws lambda put-function-event-invoke-config --function-name {function.name}"
        remedy = f'{command} --destination-config \'{{"OnFailure": {{"Destination": "QUEUE_ARN"}}}}\''
        yield Finding("failures", "warn", "an asynchronous event that fails is lost: it has no destination", remedy)
    else:
        yield Finding("failures", "ok", f"go to {destination}")
        if ":sqs:" in destination:
            function.replay_s += _retention_s(function, destination)
    yield Finding("retries", "ok", f"{retries}, while an event is younger than {age_s} s")


def _queues(function: _Function) -> Iterator[Finding]:
    mappings = function.client("lambda").list_event_source_mappings(FunctionName=function.name)["EventSourceMappings"]
    for mapping in mappings:
        arn = mapping["EventSourceArn"]
        if mapping.get("BatchSize", 1) != 1:
            detail = f"{arn}: {mapping['BatchSize']} events at once, and each is a run of its own"
            command = f"aws lambda update-event-source-mapping --uuid {mapping['UUID']} --batch-size 1"
            yield Finding("batch size", "fail", detail, command)
        if ":sqs:" not in arn:
            continue
        attributes = _attributes(function, arn)
        visible_s = int(attributes.get("VisibilityTimeout", 30))
        wanted_s = _VISIBILITY_IN_TIMEOUTS * int(function.configuration["Timeout"])
        url = _url(function, arn)
        command = f"aws sqs set-queue-attributes --queue-url {url} --attributes VisibilityTimeout={wanted_s}"
        detail = f"{arn}: messages come back after {visible_s} s" + (
            "" if visible_s >= wanted_s else f", while their run may go on; {wanted_s} s is six timeouts"
        )
        yield finding("queue", visible_s >= wanted_s, detail, command)
        if "RedrivePolicy" not in attributes:
            yield Finding("queue", "warn", f"{arn} has no dead-letter queue: a bad message comes for ever", command)
        function.replay_s = max(function.replay_s, 2 * _retention_s(function, arn))


def _buckets(function: _Function, settings: HandlerSettings) -> Iterator[Finding]:
    s3 = function.client("s3")
    where = settings.guard.checkpoint_bucket
    days = -(-function.replay_s // _DAY_S)
    yield from _looked("retention", lambda: examine_checkpoints(s3, where, days))
    yield from _looked("script", lambda: examine_entry_point(s3, settings.script))
    yield from _looked("S3 endpoint", lambda: examine_store(s3, str(where)))


def _retention_s(function: _Function, arn: str) -> int:
    return int(_attributes(function, arn).get("MessageRetentionPeriod", _QUEUE_DEFAULT_S))


def _attributes(function: _Function, arn: str) -> Mapping[str, str]:
    url = _url(function, arn)
    found = function.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    return dict(found["Attributes"])


def _url(function: _Function, arn: str) -> str:
    account, name = arn.split(":")[4:6]
    return str(function.client("sqs").get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"])


def _qualified(name: str) -> tuple[str, str, str]:
    """Split a version or alias off: `f:live`, or the eighth part of an ARN."""
    parts = name.split(":")
    has_one = len(parts) == 8 if name.startswith("arn:") else len(parts) == 2  # noqa: PLR2004 - as documented by AWS
    return (name.rpartition(":")[0], ":", parts[-1]) if has_one else (name, "", "")
