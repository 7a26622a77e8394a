"""The commits of a generated history as bytes, and what the gate adds to them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Self

__all__ = ["Actions", "announced", "marked", "note_of"]


@dataclass(frozen=True)
class Actions:
    """A commit as bytes. `adds`: the prefix of each new file, and whether the same commit also removes it."""

    serial: int
    operation: str = "WRITE"
    adds: tuple[tuple[str, bool], ...] = ()
    changes_metadata: bool = False
    transactions: tuple[tuple[str, int], ...] = ()

    @property
    def prefixes(self) -> frozenset[object]:
        return frozenset(prefix for prefix, removed in self.adds if prefix and not removed)

    @property
    def creation(self) -> str:
        kinds = ("protocol", "metaData", "domainMetadata") if self.changes_metadata else ()
        return "".join(_line({kind: {"of": self.serial}}) for kind in kinds)

    def with_only(self, transactions: tuple[tuple[str, int], ...]) -> Self:
        """Return the same commit with these transactions instead of its own."""
        return replace(self, transactions=transactions)

    def body(self) -> str:
        lines = [_line({"commitInfo": {"operation": self.operation, "serial": self.serial}})]
        lines += [_line({"txn": {"appId": key, "version": version}}) for key, version in self.transactions]
        lines.append(self.creation)
        for number, (prefix, removed) in enumerate(self.adds):
            path = f"p=1/{prefix}part-{self.serial}-{number}.parquet"
            lines.append(_line({"add": {"path": path}}))
            lines += [_line({"remove": {"path": path}})] if removed else []
        return "".join(lines)


def marked(body: str, key: str, epoch: int) -> str:
    """Return a commit with the gate's transaction action behind its first line; times are 0."""
    first, _, rest = body.partition("\n")
    mark = _line({"txn": {"appId": key, "version": epoch, "lastUpdated": 0}})
    return f"{first}\n{mark}{rest}"


def note_of(actions: str, nonce: str) -> str:
    """Return a note, with the actions that a settler is to know."""
    return actions + _line({"note": {"nonce": nonce}})


def announced(nonce: str) -> str:
    """Return what the journal learns of a commit."""
    return "\n" + _line({"event": "commit_passed", "atMs": 0, "nonce": nonce})


def _line(action: dict[str, Any]) -> str:
    return json.dumps(action, separators=(",", ":")) + "\n"
