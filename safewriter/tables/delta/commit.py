"""One version of a Delta log, as far as a guard must understand it.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from safewriter.parsing import parsed

__all__ = ["FENCE", "REVERT", "Commit", "Signature"]

FENCE: Final = "SAFEWRITER FENCE"
REVERT: Final = "SAFEWRITER REVERT"

# An operation that rewrites files counts the rows that it copied as output, too.
_CHANGED: Final = {
    "MERGE": ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"),
    "UPDATE": ("numUpdatedRows",),
    "DELETE": ("numDeletedRows",),
}


@dataclass(frozen=True, slots=True)
class Signature:
    """The guard's text in the `userMetadata` of its own commits: whose fence it is, or which version it reverts."""

    write_key: str
    epoch: int
    reverts: int | None = None

    def to_text(self) -> str:
        """Return the signature as the text that `DESCRIBE HISTORY` shows."""
        return json.dumps({"safewriter": {"key": self.write_key, "epoch": self.epoch, "reverts": self.reverts}})

    @classmethod
    def from_text(cls, text: object) -> Signature | None:
        """Read a signature back; None for any other text."""
        try:
            found = parsed(str(text))["safewriter"]
            return cls(found["key"], found["epoch"], found.get("reverts"))
        except (ValueError, TypeError, KeyError):
            return None


@dataclass(frozen=True, slots=True)
class Commit:
    """A version with its actions, each as in the file."""

    version: int
    info: dict[str, Any]
    adds: tuple[dict[str, Any], ...]
    removes: tuple[dict[str, Any], ...]
    cdc: tuple[dict[str, Any], ...]
    transactions: dict[str, int]
    metadata: dict[str, Any] | None
    protocol: dict[str, Any] | None
    domains: tuple[str, ...]

    @classmethod
    def parse(cls, version: int, body: bytes) -> Commit:
        """Parse the JSON lines of a commit; `ValueError` if they are not valid."""
        actions: dict[str, list[dict[str, Any]]] = {}
        for line in body.splitlines():
            if line.strip():
                for kind, action in parsed(line).items():
                    actions.setdefault(kind, []).append(action)
        return cls(
            version=version,
            info=next(iter(actions.get("commitInfo", ())), {}),
            adds=tuple(actions.get("add", ())),
            removes=tuple(actions.get("remove", ())),
            cdc=tuple(actions.get("cdc", ())),
            transactions={txn["appId"]: int(txn["version"]) for txn in actions.get("txn", ())},
            metadata=next(iter(actions.get("metaData", ())), None),
            protocol=next(iter(actions.get("protocol", ())), None),
            domains=tuple(domain["domain"] for domain in actions.get("domainMetadata", ())),
        )

    @property
    def signature(self) -> Signature | None:
        """The guard's signature, if this is a fence or a revert."""
        is_ours = self.info.get("operation") in (FENCE, REVERT)
        return Signature.from_text(self.info.get("userMetadata")) if is_ours else None

    @property
    def owners(self) -> set[str]:
        """The application ids of its transactions and of the guard's signature."""
        return {*self.transactions, *((self.signature.write_key,) if self.signature is not None else ())}

    @property
    def paths(self) -> set[str]:
        """The keys, relative to the table, of all files that this version refers to."""
        return {unquote(action["path"]) for action in (*self.adds, *self.removes, *self.cdc)}

    @property
    def changes_data(self) -> bool:
        """Whether it changes rows; a compaction only moves them."""
        return any(action.get("dataChange", True) for action in (*self.adds, *self.removes))

    @property
    def is_blind_append(self) -> bool:
        """Whether it adds rows and has read none. Engines other than Spark do not record this for an append."""
        said = self.info.get("isBlindAppend")
        mode = (self.info.get("operationParameters") or {}).get("mode")
        appends = self.info.get("operation") == "WRITE" and str(mode).strip('"').lower() == "append"
        return not self.removes and (said is True or (said is None and appends))

    def settles(self, write_key: str, epoch: int) -> bool:
        """Tell whether this is a commit or a fence of the write with this epoch or a later one."""
        return self.transactions.get(write_key, -1) >= epoch

    @property
    def rows(self) -> int | None:
        """How many rows the operation says it has written, updated or deleted; None if it does not say."""
        metrics = self.info.get("operationMetrics", {})
        names = _CHANGED.get(str(self.info.get("operation")), ("numOutputRows",))
        counts = [count for name in names if (count := _whole(metrics.get(name))) is not None]
        return sum(counts) if counts else None

    @property
    def bytes(self) -> int:
        """The size of all files added, in bytes."""
        return sum(int(action.get("size", 0)) for action in self.adds)


def _whole(text: object) -> int | None:
    return int(str(text)) if str(text).isdigit() else None
