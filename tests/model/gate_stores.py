"""The object store of a generated history, as `MemoryObjects.java` is one: it fails on order and remembers requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BrokenError", "DeniedError", "NoAnswerError", "Stores"]


class NoAnswerError(Exception):
    """The object store, or the journal's disk, has failed."""


class DeniedError(Exception):
    """The object store has refused the only request that was sent."""


class BrokenError(Exception):
    """A library throws what the gate does not expect: nobody has noted whether the commit landed."""


@dataclass
class Stores:
    """Bodies and the transactions in them, by path. `meanwhile` takes a step before an answer, if the plan says so."""

    meanwhile: Callable[[dict[str, Any]], None]
    bodies: dict[str, str] = field(default_factory=dict)
    epochs: dict[str, dict[str, int]] = field(default_factory=dict)
    calls: list[list[str]] = field(default_factory=list)
    _plan: dict[str, dict[str, Any]] = field(default_factory=dict)

    def begin(self, plan: dict[str, dict[str, Any]]) -> None:
        """Begin a commit: forget what was asked, and take orders for what is going to be."""
        self.calls, self._plan = [], {path: dict(order) for path, order in plan.items()}

    def write(self, path: str, body: str, epochs: dict[str, int]) -> None:
        self.bodies[path], self.epochs[path] = body, epochs

    def put(self, path: str, body: str, epochs: dict[str, int], told: str) -> bool:
        """Create an object; tell whether there was none. `told` is what the gate says meanwhile."""
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
        """Return the epoch with which a version bears a key: 0 if it does not, None if it is gone."""
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
