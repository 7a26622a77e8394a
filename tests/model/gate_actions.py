"""The commits of a generated history as bytes, and what the gate adds to them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Self

__all__ = ["Actions", "announced", "marked", "note_of", "told_refused"]


ROW_IDS = "delta.rowTracking"
"""A domain that each commit with new rows raises."""


@dataclass(frozen=True)
class Actions:
    """A commit as bytes. `adds`: the prefix of each new file, and whether the same commit also removes it. `removes`:
    it removes another writer's file. `domain`: the domain whose metadata it changes.
    """

    serial: int
    operation: str = "WRITE"
    adds: tuple[tuple[str, bool], ...] = ()
    removes: bool = False
    changes_metadata: bool = False
    domain: str = ""
    transactions: tuple[tuple[str, int], ...] = ()

    @property
    def prefixes(self) -> frozenset[object]:
        return frozenset(prefix for prefix, removed in self.adds if prefix and not removed)

    @property
    def creation(self) -> str:
        kinds = ("protocol", "metaData") if self.changes_metadata else ()
        domains = [_line({"domainMetadata": {"domain": self.domain}})] if self.domain else []
        return "".join([*(_line({kind: {"of": self.serial}}) for kind in kinds), *domains])

    @property
    def changes_table(self) -> bool:
        return self.changes_metadata or self.domain not in ("", ROW_IDS)

    @property
    def does_more(self) -> bool:
        """Whether it does more than add files: it removes some, or has the script's own transaction."""
        own = any(not key.startswith("sw-") for key, _ in self.transactions)
        return own or self.removes or any(removed for _, removed in self.adds)

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
        lines += [_line({"remove": {"path": "p=1/part-of-another.parquet"}})] if self.removes else []
        return "".join(lines)


def marked(body: str, key: str, epoch: int) -> str:
    """Return a commit with the gate's transaction action after its first line; times are 0."""
    first, _, rest = body.partition("\n")
    mark = _line({"txn": {"appId": key, "version": epoch, "lastUpdated": 0}})
    return f"{first}\n{mark}{rest}"


def note_of(actions: str, nonce: str) -> str:
    """Return a note with the actions that a settler needs."""
    return actions + _line({"note": {"nonce": nonce}})


def announced(nonce: str) -> str:
    """Return the journal's line of a commit."""
    return "\n" + _line({"event": "commit_passed", "atMs": 0, "nonce": nonce})


def told_refused(nonce: str, code: str) -> str:
    """Return the journal's line of a refused statement."""
    return "\n" + _line({"event": "refused", "atMs": 0, "nonce": nonce, "reason": code})


def _line(action: dict[str, Any]) -> str:
    return json.dumps(action, separators=(",", ":")) + "\n"
