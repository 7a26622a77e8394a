"""Check commands of the AWS CLI against botocore's service models, from which the CLI derives its options."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import botocore.session
from botocore import xform_name
from botocore.validate import ParamValidator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from botocore.model import Shape, StructureShape

__all__ = ["commands", "complaint"]

# the CLI's own options, of no service
_CUSTOM = {("s3", "cp"), ("configure", "")}
# The CLI's renamed options: https://github.com/aws/aws-cli, awscli/customizations/argrename.py
_RENAMED = {("subscribe", "endpoint"): "notification-endpoint"}
_GLOBAL = {"query", "output", "region"}


def commands(remedy: str) -> Iterator[str]:
    """Yield the commands in a text, separated by `; `; each begins with `aws `."""
    for part in remedy.split("; "):
        begin = re.search(r"\baws [a-z]", part)
        if begin is not None:
            yield part[begin.start() :]


def complaint(command: str) -> str | None:
    """Return what is wrong with a command; None if the CLI would send it."""
    words = shlex.split(command.partition(" > ")[0])
    service, operation, rest = words[1], "".join(words[2:3]), words[3:]
    if (service, operation) in _CUSTOM:
        return None
    model = botocore.session.get_session().get_service_model(service.removesuffix("api"))
    named = {xform_name(name, "-"): name for name in model.operation_names}
    if operation not in named:
        return f"{service} has no operation {operation}"
    return _input(operation, rest, model.operation_model(named[operation]).input_shape)


def _input(operation: str, words: list[str], shape: StructureShape | None) -> str | None:
    members: dict[str, Shape] = {} if shape is None else dict(shape.members)
    plain = {xform_name(name, "-"): name for name in members}
    names = {_RENAMED.get((operation, option), option): name for option, name in plain.items()}
    given = set()
    for option, values in _options(words):
        if not values:
            return f"{option} has no value"
        if option in _GLOBAL:
            continue
        if option not in names:
            return f"there is no option {option}"
        given.add(names[option])
        if values[0].startswith("file://"):
            continue
        member = members[names[option]]
        if len(values) > 1 and member.type_name != "list":
            return f"{option} has {len(values)} values"
        report = ParamValidator().validate(_value(values, member), member)
        if report.has_errors():
            return f"{option}: {report.generate_report()}"
    lacking = sorted(set(() if shape is None else shape.required_members) - given)
    return f"lacks {', '.join(lacking)}" if lacking else None


def _options(words: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each option with the values that follow it; a word before any option is an option without a value."""
    found: list[tuple[str, list[str]]] = []
    for word in words:
        if word.startswith("--") or not found:
            found.append((word.removeprefix("--"), []))
        else:
            found[-1][1].append(word)
    yield from found


def _value(values: list[str], shape: Any) -> Any:
    """Parse a value as the CLI does: JSON, its shorthand `Key=value`, or a plain one."""
    if values[0].startswith(("{", "[")) and shape.type_name in ("structure", "map", "list"):
        return json.loads(values[0])
    if shape.type_name == "list":
        return [_value([value], shape.member) for value in values]
    if shape.type_name in ("structure", "map"):
        pairs = (pair.partition("=") for pair in values[0].split(","))
        return {key: _value([value], shape.members[key] if shape.type_name == "structure" else shape.value)
                for key, _, value in pairs}  # fmt: skip
    if shape.type_name in ("integer", "long"):
        return int(values[0])
    return json.loads(values[0]) if shape.type_name == "boolean" else values[0]
