"""The model's twin of `MemoryObjects.java`: an object store that injects faults and records requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BrokenError", "DeniedError", "NoAnswerError", "Stores"]


class NoAnswerError(Exception):
    """The object store or the journal's disk fails."""


class DeniedError(Exception):
    """The object store denies the only request that was sent."""


class BrokenError(Exception):
    """A library throws an exception that the gate does not expect, so the gate's status stays in flight."""


@dataclass
class Stores:
    """Bodies and their transactions, by path. `meanwhile` runs a step before an answer, if the plan has one."""

    meanwhile: Callable[[dict[str, Any]], None]
    bodies: dict[str, str] = field(default_factory=dict)
    epochs: dict[str, dict[str, int]] = field(default_factory=dict)
    calls: list[list[str]] = field(default_factory=list)
    _plan: dict[str, dict[str, Any]] = field(default_factory=dict)

    def begin(self, plan: dict[str, dict[str, Any]]) -> None:
        """Begin a commit: clear the recorded requests, and set the faults to inject."""
        self.calls, self._plan = [], {path: dict(order) for path, order in plan.items()}

    def write(self, path: str, body: str, epochs: dict[str, int]) -> None:
        self.bodies[path], self.epochs[path] = body, epochs

    def put(self, path: str, body: str, epochs: dict[str, int], told: str) -> bool:
        """Create an object; return whether there was none. `told`: the gate's state to record with the request."""
        self.calls.append(["put", path, body, told])
        fault = self._fault(path)
        if fault == "breaks":
            raise BrokenError
        if fault == "fails":
            raise NoAnswerError
        if fault == "denied":
            raise DeniedError
        won = path not in self.bodies
        if won:
            self.write(path, body, epochs)
        if fault == "applied":
            raise NoAnswerError
        return won

    def read(self, path: str, key: str) -> int | None:
        """Return a version's epoch under a key: 0 if it does not have the key, None if the version is gone."""
        self.calls.append(["read", path])
        fault = self._fault(path)
        if fault == "unreadable":
            raise NoAnswerError
        if fault == "gone":
            self.bodies.pop(path, None)
        return self.epochs[path].get(key, 0) if path in self.bodies else None

    def _fault(self, path: str) -> str:
        order = self._plan.get(path, {})
        first = order.get("first")
        if first is not None and path not in self.bodies:
            self.write(path, first.body(), dict(first.transactions))
        if "meanwhile" in order:
            self.meanwhile(order.pop("meanwhile"))
        return str(order.get("fault", ""))
