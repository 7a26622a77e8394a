"""Findings about a stack's sweeper: the function exists, a rule invokes it, its role allows its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from soal.doctor.deployed import command
from soal.doctor.finding import Finding, finding

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from soal.doctor.stack import Stack

__all__ = ["examine_sweeper"]

_WHY: Final = "writes of dead runs are not settled until their next attempt"


def examine_sweeper(client: Callable[[str], Any], stack: Stack) -> Generator[Finding, None, Mapping[str, Any] | None]:
    """Examine the sweeper's function and its rule; return the function's configuration, None if there is none."""
    name = stack.outputs["SweeperName"]
    try:
        configuration = client("lambda").get_function_configuration(FunctionName=name)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        yield Finding("sweeper", "fail", f"{name} does not exist: {_WHY}", stack.repair)
        return None
    state, update = (configuration.get(key) or "Active" for key in ("State", "LastUpdateStatus"))
    is_well = state in ("Active", "Inactive") and update in ("Active", "Successful")
    reason = configuration.get("StateReason") or configuration.get("LastUpdateStatusReason") or update
    detail = f"{name}, {state}" + ("" if is_well else f": {reason}")
    yield finding("sweeper", detail, command("lambda", "get-function", function_name=name), is_well=is_well)
    yield from _rule(client("events"), configuration["FunctionArn"], stack)
    return dict(configuration)


def _rule(events: Any, arn: str, stack: Stack) -> Iterator[Finding]:  # noqa: ANN401 - a boto3 client
    names = events.list_rule_names_by_target(TargetArn=arn)["RuleNames"]
    rules = [rule for rule in (events.describe_rule(Name=name) for name in names) if rule.get("ScheduleExpression")]
    enabled = [rule for rule in rules if rule["State"].startswith("ENABLED")]
    if enabled:
        told = ", ".join(f"{rule['Name']}, {rule['ScheduleExpression']}" for rule in enabled)
        yield Finding("sweeper's rule", "ok", told)
    elif rules:
        remedy = command("events", "enable-rule", name=rules[0]["Name"])
        yield Finding("sweeper's rule", "fail", f"{rules[0]['Name']} is disabled: {_WHY}", remedy)
    else:
        detail = f"no rule with a schedule has {arn} as its target: {_WHY}"
        yield Finding("sweeper's rule", "fail", detail, stack.repair)
