"""The deployed function under examination, and findings about its events: destinations and queues."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from soal.doctor.finding import Finding, finding

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

_T = TypeVar("_T")
_EVENT_AGE_DEFAULT_S: Final = 21_600
_RETRIES_DEFAULT: Final = 2
_VISIBILITY_IN_TIMEOUTS: Final = 6
_QUEUE_DEFAULT_S: Final = 345_600
_RECEIVES_MAX: Final = 5
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
_RIGHT: Final = "the function's role needs sqs:SendMessage there"


@dataclass(slots=True)
class DeployedFunction:
    """A function by name or ARN. `client` returns a boto3 client for a service."""

    name: str
    client: Callable[[str], Any]
    configuration: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, Any] = field(default_factory=dict)
    is_alias_known: bool = True
    """Whether `name` is what callers invoke. If not, an unknown alias may hold the settings of events and queues."""
    replay_s: int | None = None
    """For how long after its first delivery Lambda or a queue can deliver an event again; None if not known."""
    destination: str | None = None
    """The destination of a failed asynchronous event."""

    @property
    def plain_name(self) -> str:
        """The function's name without ARN and qualifier."""
        return str(self.configuration["FunctionName"])

    @property
    def is_durable(self) -> bool:
        """Whether the function is durable: one event, several invocations."""
        return bool(self.configuration.get("DurableConfig"))

    @property
    def arn(self) -> str:
        """The ARN without a version or alias."""
        return split_qualifier(str(self.configuration["FunctionArn"]))[0]

    def update(self, option: str) -> str:
        """Return the AWS CLI command that changes a setting."""
        return f"aws lambda update-function-configuration --function-name {self.plain_name} {option}"

    def correct(self, variable: str) -> str:
        """Return the commands that change a variable. Lambda only replaces all variables at once."""
        query = "{Variables: Environment.Variables}"
        show = command("lambda", "get-function-configuration", function_name=self.plain_name, query=query)
        update = self.update("--environment file://environment.json")
        return f"{show} > environment.json; correct {variable} in that file; {update}"


def split_qualifier(name: str) -> tuple[str, str | None]:
    """Split a name or ARN into name and qualifier (version or alias): `f:live`, or the eighth part of an ARN."""
    parts = name.split(":")
    has_one = len(parts) == 8 if name.startswith("arn:") else len(parts) == 2  # noqa: PLR2004 - as documented by AWS
    return (name.rpartition(":")[0], parts[-1]) if has_one else (name, None)


def command(service: str, operation: str, **options: str) -> str:
    """Return a command of the AWS CLI, quoted for a shell; `function_name` becomes `--function-name`."""
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    return shlex.join(["aws", service, operation, *words])


def look(name: str, at: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Run a check; yield a warning instead of raising if a request fails or an answer has an undocumented form."""

    def findings() -> Generator[Finding, None, None]:
        yield from at()

    yield from look_for(name, findings)


def look_for(
    name: str, at: Callable[[], Generator[Finding, None, _T]], odd: Literal["warn", "fail"] = "warn"
) -> Generator[Finding, None, _T | None]:
    """Run a check as `look` does; return its value, or None. `odd`: the status for an undocumented answer."""
    try:
        return (yield from at())
    except (BotoCoreError, ClientError) as error:
        yield not_examined(name, str(error), "give your own user this permission, and try again")
    except (ResponseParserError, LookupError, TypeError, ValueError, AttributeError) as error:
        detail = f"unknown: an answer that AWS does not document ({error!r})"
        yield Finding(
            name, odd, detail, "try again; if AWS_ENDPOINT_URL… or --endpoint-url is set, check that endpoint"
        )
    return None


def not_examined(name: str, why: str, remedy: str) -> Finding:
    """Return the warning of a check without evidence."""
    return Finding(name, "warn", f"could not be examined: {why}", remedy)


def examine_events(function: DeployedFunction) -> Iterator[Finding]:
    """Examine where events come from and where failed ones go. Sets `function.replay_s`, if both are known."""
    if not function.is_alias_known:
        return
    asynchronous_s = yield from look_for("asynchronous events", lambda: _asynchronous(function))
    queues_s = yield from look_for("queues", lambda: _queues(function))
    if asynchronous_s is not None and queues_s is not None:
        function.replay_s = max(asynchronous_s, queues_s)


def _asynchronous(function: DeployedFunction) -> Generator[Finding, None, int]:
    """Examine how failed asynchronous events are handled, set `function.destination`; return for how long they come."""
    name, qualifier = split_qualifier(function.name)
    addressed = {"FunctionName": name, **({} if qualifier is None else {"Qualifier": qualifier})}
    config: Mapping[str, Any] | None = None
    try:
        config = function.client("lambda").get_function_event_invoke_config(**addressed)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
    fields = {} if config is None else config
    retries = fields.get("MaximumRetryAttempts", _RETRIES_DEFAULT)
    age_s = fields.get("MaximumEventAgeInSeconds", _EVENT_AGE_DEFAULT_S)
    destination = fields.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
    if function.is_durable:  # durable functions have no destinations
        destination = function.configuration.get("DeadLetterConfig", {}).get("TargetArn")
    replay_s = int(age_s)
    function.destination = destination
    if function.is_durable and destination is None:
        remedy = f"{function.update('--dead-letter-config TargetArn=QUEUE_ARN')}; {_RIGHT}"
        yield Finding("failures", "warn", "the event of a failed execution is lost: there is no queue for it", remedy)
    elif destination is None:
        # `put` deletes all settings that it does not name.
        operation = f"{'put' if config is None else 'update'}-function-event-invoke-config"
        options = {"function_name": name, **({} if qualifier is None else {"qualifier": qualifier})}
        value = json.dumps({"OnFailure": {"Destination": "QUEUE_ARN"}})
        remedy = f"{command('lambda', operation, **options, destination_config=value)}; {_RIGHT}"
        yield Finding("failures", "warn", "an asynchronous event that fails is lost: it has no destination", remedy)
    else:
        yield Finding("failures", "ok", f"go to {destination}")
        if ":sqs:" in destination:
            replay_s += _retention_s(function, destination)
    if function.is_durable and retries > 0:
        options = {"function_name": name, **({} if qualifier is None else {"qualifier": qualifier})}
        operation = f"{'put' if config is None else 'update'}-function-event-invoke-config"
        yield Finding(
            "retries",
            "warn",
            f"{retries}: each is another execution, and another run if the event has no clientToken",
            command("lambda", operation, **options, maximum_retry_attempts="0"),
        )
    else:
        yield Finding("retries", "ok", f"{retries}, while an event is younger than {age_s} s")
    return replay_s


def _queues(function: DeployedFunction) -> Generator[Finding, None, int]:
    """Examine each queue or stream from which Lambda invokes the function; return for how long its messages come."""
    replay_s = 0
    mappings = function.client("lambda").list_event_source_mappings(FunctionName=function.name)["EventSourceMappings"]
    for mapping in mappings:
        arn = mapping["EventSourceArn"]
        if mapping.get("BatchSize", 1) != 1:
            detail = f"{arn}: {mapping['BatchSize']} events at once, and each is a run of its own"
            remedy = command("lambda", "update-event-source-mapping", uuid=mapping["UUID"], batch_size="1")
            yield Finding("batch size", "fail", detail, remedy)
        if ":sqs:" in arn:
            yield from _queue(function, arn)
            replay_s = max(replay_s, 2 * _retention_s(function, arn))
    return replay_s


def _queue(function: DeployedFunction, arn: str) -> Iterator[Finding]:
    url, attributes = _url(function, arn), _attributes(function, arn)
    visible_s = int(attributes.get("VisibilityTimeout", 30))
    wanted_s = _VISIBILITY_IN_TIMEOUTS * int(function.configuration["Timeout"])
    remedy = command("sqs", "set-queue-attributes", queue_url=url, attributes=f"VisibilityTimeout={wanted_s}")
    detail = f"{arn}: messages are delivered again after {visible_s} s" + (
        "" if visible_s >= wanted_s else f", while their run may still work; {wanted_s} s is six timeouts"
    )
    yield finding("queue", detail, remedy, is_well=visible_s >= wanted_s)
    if "RedrivePolicy" not in attributes:
        policy = json.dumps({"deadLetterTargetArn": "OTHER_QUEUE_ARN", "maxReceiveCount": str(_RECEIVES_MAX)})
        value = json.dumps({"RedrivePolicy": policy})
        remedy = command("sqs", "set-queue-attributes", queue_url=url, attributes=value)
        detail = f"{arn} has no dead-letter queue: a bad message is delivered until it expires"
        yield Finding("dead letters", "warn", detail, remedy)


def _retention_s(function: DeployedFunction, arn: str) -> int:
    return int(_attributes(function, arn).get("MessageRetentionPeriod", _QUEUE_DEFAULT_S))


def _attributes(function: DeployedFunction, arn: str) -> Mapping[str, str]:
    url = _url(function, arn)
    reply = function.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
    return dict(reply["Attributes"])


def _url(function: DeployedFunction, arn: str) -> str:
    account, name = arn.split(":")[4:6]
    return str(function.client("sqs").get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"])
