"""One statement of a policy, and the requests that it matches.

moto checks actions and resources, but treats every condition as not fulfilled. This module knows some operators; any
other is an error, so that nothing is allowed or denied by accident.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Statement", "listed"]


@dataclass(frozen=True)
class Statement:
    """One statement of a policy document; statements of a role or a user have no principals."""

    sid: str
    effect: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    principals: tuple[str, ...] = ()

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Statement:
        """Read a statement of a policy document."""
        unknown = document.keys() - {"Sid", "Effect", "Action", "Resource", "Condition", "Principal"}
        if unknown:
            raise ValueError(f"a statement with {', '.join(unknown)} is not understood here")
        return cls(
            document.get("Sid", ""),
            document["Effect"],
            tuple(listed(document["Action"])),
            tuple(listed(document.get("Resource", "*"))),  # a role's trust policy is about the role
            document.get("Condition", {}),
            tuple(_principals(document.get("Principal", {}))),
        )

    def single(self) -> list[Statement]:
        """Return a statement for each action on each resource, together equivalent to this one."""
        return [
            Statement(self.sid, self.effect, (action,), (resource,), self.conditions, self.principals)
            for action in self.actions
            for resource in self.resources
        ]

    def concerns(self, action: str, resource: str, context: Mapping[str, str]) -> bool:
        """Return whether the statement matches a request."""
        return (
            any(_like(pattern.lower(), action.lower()) for pattern in self.actions)
            and any(_like(pattern, resource) for pattern in self.resources)
            and all(
                _fulfilled(operator, key, listed(expected), context)
                for operator, keys in self.conditions.items()
                for key, expected in keys.items()
            )
        )


def listed(value: Any) -> list[Any]:
    """Return a list; a single value becomes a list of one."""
    return value if isinstance(value, list) else [value]


def _principals(document: Any) -> list[Any]:
    return ["*"] if document == "*" else [each for some in document.values() for each in listed(some)]


def _like(pattern: str, text: str) -> bool:
    expression = "".join({"*": ".*", "?": "."}.get(character, re.escape(character)) for character in pattern)
    return re.fullmatch(expression, text, re.DOTALL) is not None


def _fulfilled(operator: str, key: str, expected: list[Any], context: Mapping[str, str]) -> bool:
    value = context.get(key)
    if operator == "Null":
        return (value is None) == (str(expected[0]).lower() == "true")
    if operator not in _OPERATORS:
        raise ValueError(f"the condition {operator} is not understood here")
    return value is not None and any(_OPERATORS[operator](str(each), value) for each in expected)


_OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "ArnEquals": _like,
    "ArnLike": _like,
    "Bool": lambda expected, value: expected.lower() == value.lower(),
    "NumericLessThan": lambda expected, value: float(value) < float(expected),
    "StringEquals": lambda expected, value: expected == value,
    "StringLike": _like,
}
