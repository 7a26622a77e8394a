"""Evaluate policies together. A request carries a condition key only if AWS's own reference lists it for its action: on
AWS a statement about any other key never matches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support.authorization import has_key
from tests.support.statement import Statement, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Access"]


@dataclass(frozen=True)
class Access:
    """A set of statements, evaluated together."""

    statements: tuple[Statement, ...]

    @classmethod
    def of(cls, documents: Iterable[Mapping[str, Any]]) -> Access:
        """Read policy documents."""
        return cls(tuple(Statement.of(each) for document in documents for each in listed(document["Statement"])))

    def may(self, action: str, resource: str, **context: str) -> bool:
        """Return whether a request is allowed; condition keys are given as `s3_prefix` for `s3:prefix`."""
        values = {key.replace("_", ":", 1).replace("_", "-"): value for key, value in context.items()}
        return self.decides(action, resource, values) is not None

    def decides(self, action: str, resource: str, context: Mapping[str, str]) -> Statement | None:
        """Return the statement that allows a request; None if no statement does, or another denies it."""
        carried = {key: value for key, value in context.items() if has_key(action, key)}
        found = [each for each in self.statements if each.concerns(action, resource, carried)]
        denied = any(each.effect == "Deny" for each in found)
        return None if denied or not found else found[0]

    def to(self, principal: str) -> Access:
        """Return the part of a resource's policy that applies to a principal, such as `events.amazonaws.com`."""
        return Access(tuple(each for each in self.statements if {principal, "*"} & set(each.principals)))

    def single(self) -> Access:
        """Return the same access with a statement for each action on each resource."""
        return Access(tuple(single for each in self.statements for single in each.single()))

    def without(self, statement: Statement) -> Access:
        """Return the access without one of the statements."""
        return Access(tuple(each for each in self.statements if each != statement))
