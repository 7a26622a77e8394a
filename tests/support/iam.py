"""What policies allow: an evaluator of identity policies, strict about what it does not know.

moto checks actions and resources, but takes every condition for not fulfilled. Here `StringLike`, `StringEquals`,
`Bool` and `Null` are known; any other operator is an error, so that nothing is allowed or denied by accident.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Access", "Statement"]


@dataclass(frozen=True)
class Statement:
    """One statement of a policy document; `principal` and the like are no concern of an identity policy."""

    sid: str
    effect: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Statement:
        """Read a statement of a policy document."""
        unknown = document.keys() - {"Sid", "Effect", "Action", "Resource", "Condition", "Principal"}
        if unknown:
            raise ValueError(f"a statement with {', '.join(unknown)} is not understood here")
        return cls(
            document.get("Sid", ""),
            document["Effect"],
            tuple(_listed(document["Action"])),
            tuple(_listed(document["Resource"])),
            document.get("Condition", {}),
        )

    def single(self) -> list[Statement]:
        """Return a statement for each action on each resource, which together say the same."""
        return [
            Statement(self.sid, self.effect, (action,), (resource,), self.conditions)
            for action in self.actions
            for resource in self.resources
        ]

    def concerns(self, action: str, resource: str, context: Mapping[str, str]) -> bool:
        """Tell whether the statement speaks of a request."""
        return (
            any(_like(pattern.lower(), action.lower()) for pattern in self.actions)
            and any(_like(pattern, resource) for pattern in self.resources)
            and all(
                _fulfilled(operator, key, _listed(expected), context)
                for operator, keys in self.conditions.items()
                for key, expected in keys.items()
            )
        )


@dataclass(frozen=True)
class Access:
    """What a set of statements allows together."""

    statements: tuple[Statement, ...]

    @classmethod
    def of(cls, documents: Iterable[Mapping[str, Any]]) -> Access:
        """Read policy documents."""
        return cls(tuple(Statement.of(each) for document in documents for each in _listed(document["Statement"])))

    def may(self, action: str, resource: str, **context: str) -> bool:
        """Tell whether a request is allowed; condition keys are given as `s3_prefix` for `s3:prefix`."""
        values = {key.replace("_", ":", 1).replace("_", "-"): value for key, value in context.items()}
        return self.decides(action, resource, values) is not None

    def decides(self, action: str, resource: str, context: Mapping[str, str]) -> Statement | None:
        """Return the statement that allows a request; None if there is none, or another denies it."""
        found = [each for each in self.statements if each.concerns(action, resource, context)]
        denied = any(each.effect == "Deny" for each in found)
        return None if denied or not found else found[0]

    def single(self) -> Access:
        """Return the same with a statement for each action on each resource."""
        return Access(tuple(single for each in self.statements for single in each.single()))

    def without(self, statement: Statement) -> Access:
        """Return what is allowed without one of the statements."""
        return Access(tuple(each for each in self.statements if each != statement))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _like(pattern: str, text: str) -> bool:
    expression = "".join({"*": ".*", "?": "."}.get(character, re.escape(character)) for character in pattern)
    return re.fullmatch(expression, text, re.DOTALL) is not None


def _fulfilled(operator: str, key: str, expected: list[Any], context: Mapping[str, str]) -> bool:
    value = context.get(key)
    if operator == "Null":
        return (value is None) == (str(expected[0]).lower() == "true")
    if operator not in ("StringLike", "StringEquals", "Bool"):
        raise ValueError(f"the condition {operator} is not understood here")
    if value is None:
        return False
    if operator == "StringLike":
        return any(_like(str(each), value) for each in expected)
    return value.lower() in [str(each).lower() for each in expected] if operator == "Bool" else value in expected
