"""The requests that are simulated for the roles of a deployed function and of its sweeper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from safewriter.objects import Location
from soal.doctor import required_actions as needs
from soal.doctor.deployed import look
from soal.doctor.finding import Finding
from soal.doctor.policy_simulation import examine_role
from soal.doctor.required_actions import Kind, RequestKind, requests_of
from soal.doctor.sweeper import examine_sweeper

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from handler.settings import HandlerSettings
    from soal.doctor.deployed import DeployedFunction
    from soal.doctor.stack import Stack

__all__ = ["examine_rights"]

# https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
_TO_DESTINATION: Final = {
    "sqs": "sqs:SendMessage",
    "sns": "sns:Publish",
    "lambda": "lambda:InvokeFunction",
    "events": "events:PutEvents",
    "s3": "s3:PutObject",
}


def examine_rights(
    function: DeployedFunction, settings: HandlerSettings, stack: Stack | None, tables: Sequence[Location]
) -> Iterator[Finding]:
    """Simulate the role of the function, and with a stack examine the sweeper and its role."""
    lake = None if stack is None else stack.outputs.get("LakeBucket")
    data = [*tables, *(() if lake is None else (Location(lake, "*"),))]
    if not data:
        detail = "none is known, so the roles' permissions on tables were not simulated"
        yield Finding("tables", "warn", detail, "name one that jobs write to: --table s3://bucket/table")
    places: list[tuple[Kind, Location]] = [("checkpoints", settings.guard.checkpoint_bucket)]
    places += [("data", place) for place in data]
    partition = function.arn.split(":")[1]
    requests = [*requests_of(needs.JOB, [*places, *_scripts(settings)], partition), *_others(function, settings)]
    yield from _role(function, "role", function.configuration, requests)
    if stack is not None:
        requests = list(requests_of(needs.SWEEPER, places, partition))
        yield from look("sweeper", lambda: _sweeper(function, stack, requests))


def _sweeper(function: DeployedFunction, stack: Stack, requests: Sequence[RequestKind]) -> Iterator[Finding]:
    sweeper = yield from examine_sweeper(function.client, stack)
    if sweeper is not None:
        yield from _role(function, "sweeper's role", sweeper, requests)


def _role(
    function: DeployedFunction, name: str, configuration: Mapping[str, Any], requests: Sequence[RequestKind]
) -> Iterator[Finding]:
    yield from examine_role(function.client("iam"), name, configuration["Role"], tuple(dict.fromkeys(requests)))


def _scripts(settings: HandlerSettings) -> list[tuple[Kind, Location]]:
    folder = settings.script_folder
    if folder is not None:
        return [("scripts", folder)]
    script = settings.script
    return [] if script is None else [("scripts", Location(script.bucket, script.key.rpartition("/")[0]))]


def _others(function: DeployedFunction, settings: HandlerSettings) -> Iterator[RequestKind]:
    """Yield the requests that Lambda makes in the role's name, and the handler's own to continue a run."""
    if function.destination is not None:
        action = _TO_DESTINATION[function.destination.split(":")[2]]
        yield RequestKind(action, function.destination + ("/*" if action == "s3:PutObject" else ""))
    if function.is_durable:
        execution = f"{function.arn}:$LATEST/durable-execution/name/id"
        yield RequestKind("lambda:CheckpointDurableExecution", execution)
        yield RequestKind("lambda:GetDurableExecutionState", execution)
    if settings.continue_max > 0:
        yield RequestKind("lambda:InvokeFunction", str(function.configuration["FunctionArn"]))
