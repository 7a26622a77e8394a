"""What the bytes in S3 show at each moment: the table by a fold of its log, and the documents' verdicts.

It reads neither by the code under test. Each change is judged when S3 applies it.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.lab.campaign.schedules.log import LAKE, ROOT, slot_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.campaign.record import Violation

__all__ = ["BUCKET", "Broken", "Witness", "rows_of"]

BUCKET: Final = "checkpoints"
_FILE: Final = re.compile(r"(sw-[0-9a-f]{32})-(\d+)-([0-9a-f]{16})-part-\d{5}\.parquet")
_MOVES: Final = {
    (None, "in_progress"),
    (None, "rolled_back"),
    (None, "committed"),
    ("in_progress", "committed"),
    ("in_progress", "rolled_back"),
    ("in_progress", "rolling_back"),
    ("in_progress", "unknown"),
    ("rolling_back", "rolled_back"),
    ("rolling_back", "committed"),
    ("rolling_back", "unknown"),
    ("unknown", "committed"),
    ("unknown", "rolled_back"),
    ("unknown", "rolling_back"),
    ("rolled_back", "in_progress"),
    ("rolled_back", "committed"),  # a claim that finds the write in the table
    ("committed", "committed"),
    ("rolled_back", "rolled_back"),
}
"""By docs/concepts/protocol.md."""


class Rows(NamedTuple):
    """The rows of one attempt."""

    key: str
    epoch: int
    nonce: str


class Broken(NamedTuple):
    """A broken promise, and how it shows."""

    kind: Violation
    what: str


def rows_of(path: str) -> Rows | None:
    """Return the attempt that a data file belongs to; None for another writer's."""
    match = _FILE.fullmatch(path)
    return None if match is None else Rows(match[1], int(match[2]), match[3])


@dataclass
class Witness:
    """`there`: returns whether a data file exists. `live`: how often each file is in the table's newest version."""

    there: Callable[[str], bool]
    live: Counter[str] = field(default_factory=Counter)
    head: int = -1
    broken: list[Broken] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)
    verdicts: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, Counter[Rows]] = field(default_factory=lambda: defaultdict(Counter))
    """By write key the attempts with live files, and their number."""
    _ended: dict[str, int] = field(default_factory=dict)
    _bodies: dict[int, bytes] = field(default_factory=dict)

    def changed(self, bucket: str, key: str, body: bytes | None) -> None:
        """Look at a change."""
        if bucket == LAKE:
            if (version := slot_of(key)) is not None:
                self._committed(version, body)
            elif body is None and self.live[key.removeprefix(f"{ROOT}/")]:
                self._broke("gap", f"{key} is deleted, and version {self.head} names it")
        elif key.startswith("checkpoints/") and body is not None:
            self._document(json.loads(body))
        elif key.startswith("checkpoints/"):  # whatever it said, another one may begin anew
            name = key.removeprefix("checkpoints/").removesuffix(".json")
            self.verdicts.pop(name, None)
            self._ended.pop(name, None)

    def acknowledge(self, key: str) -> None:
        """Note that a caller was told that its rows are in the table."""
        self.acknowledged.add(key)
        if not self.holds(key):
            self._broke("lost", f"{key} is acknowledged, and version {self.head} lacks it")

    def holds(self, key: str) -> bool:
        """Return whether the table holds the write."""
        return any(self.attempts[key].values())

    # -- the table -----------------------------------------------------------------------------------------------------

    def _committed(self, version: int, body: bytes | None) -> None:
        if body is None or version != self.head + 1:
            self._broke("gap", f"version {version} is {'deleted' if body is None else 'written'} behind {self.head}")
            return
        self.head = version
        touched = set()
        for line in body.splitlines():
            action = json.loads(line)
            for kind, change in (("add", 1), ("remove", -1)):
                if kind not in action:
                    continue
                path = action[kind]["path"]
                self.live[path] += change
                if change > 0 and not self.there(f"{ROOT}/{path}"):
                    self._broke("gap", f"version {version} names {path}, which is not there")
                if (rows := rows_of(path)) is not None:
                    self.attempts[rows.key][rows] += change
                    touched.add(rows)
                    if change > 0 and rows.epoch <= self._ended.get(rows.key, 0):
                        self._broke("changed", f"version {version} is of {rows}, which was rolled back before")
                if not 0 <= self.live[path] <= 1:
                    self._broke("doubled", f"version {version} has {path} {self.live[path]} times")
        for key in {rows.key for rows in touched}:
            self._check(key)

    def _check(self, key: str) -> None:
        here = [rows for rows, count in self.attempts[key].items() if count]
        if len(here) > 1:
            self._broke("doubled", f"version {self.head} holds {len(here)} attempts of {key}")
        if not here and key in self.acknowledged:
            self._broke("lost", f"version {self.head} takes {key} away, which was acknowledged")
        if not here and self.verdicts.get(key) == "committed":
            self._broke("changed", f"version {self.head} takes {key} away, whose document says committed")

    # -- documents -----------------------------------------------------------------------------------------------------

    def _document(self, document: dict[str, object]) -> None:
        key, status, before = str(document["write_key"]), str(document["status"]), None
        before = self.verdicts.get(key)
        self.verdicts[key] = status
        if (before, status) not in _MOVES:
            self._broke("wrong_verdict", f"the document of {key} goes from {before} to {status}")
        if status == "committed" and not self.holds(key):
            self._broke("wrong_verdict", f"the document of {key} says committed, and version {self.head} lacks it")
        if status == "rolled_back":
            epoch = document["epoch"]
            assert isinstance(epoch, int)
            self._ended[key] = max(self._ended.get(key, 0), epoch)
            if self.holds(key):
                self._broke("wrong_verdict", f"the document of {key} says rolled back, and version {self.head} has it")

    def _broke(self, kind: Violation, what: str) -> None:
        self.broken.append(Broken(kind, what))
