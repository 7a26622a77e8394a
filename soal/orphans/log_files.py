"""The files of a Delta log that must be read so that no retained version is left out.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#checkpoints
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from soal.orphans.references import UnreadableLogError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safewriter.objects import ListedObject

__all__ = ["LOG", "LogFiles", "commits_of"]

LOG: Final = "_delta_log/"
_COMMIT: Final = re.compile(r"_delta_log/(\d{20})\.json")
_WHOLE: Final = re.compile(r"_delta_log/(\d{20})\.checkpoint(\.[0-9a-f-]{36})?\.(parquet|json)")
_PART: Final = re.compile(r"_delta_log/(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet")


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The files to read: `commits` by version; `checkpoints` are the keys of those that stand for older versions.

    `head` is the newest commit as it was listed.
    """

    commits: dict[int, str]
    checkpoints: tuple[str, ...]
    head: ListedObject

    @property
    def version(self) -> int:
        """The newest version."""
        return max(self.commits)

    @classmethod
    def of(cls, listed: Iterable[ListedObject]) -> LogFiles:
        """Choose from a listing of the log; `UnreadableLogError` if it does not hold a whole version."""
        entries = list(listed)
        commits = commits_of(entries)
        whole: dict[int, list[str]] = {}
        parts: dict[tuple[int, int], dict[int, str]] = {}
        for entry in entries:
            if found := _WHOLE.fullmatch(entry.key):
                whole.setdefault(int(found[1]), []).append(entry.key)
            elif found := _PART.fullmatch(entry.key):
                parts.setdefault((int(found[1]), int(found[3])), {})[int(found[2])] = entry.key
        for (version, count), keys in parts.items():
            if len(keys) == count:
                whole.setdefault(version, []).extend(keys.values())
        if not commits:
            raise UnreadableLogError("there is no Delta table: its log holds no commit")
        head = max(commits)
        return cls(
            {version: entry.key for version, entry in sorted(commits.items())},
            tuple(key for version in _needed(commits, whole) for key in whole[version]),
            commits[head],
        )


def _needed(commits: Iterable[int], checkpoints: Iterable[int]) -> tuple[int, ...]:
    """Return the versions whose checkpoints must be read beside all existing commits.

    Every version that can still be read is a checkpoint and the commits behind it. So all files that any of them can
    need are in the oldest checkpoint of the unbroken row of commits, or were added or removed by those commits. A
    version older than a gap can be read, too, if it is a checkpoint.
    """
    known = frozenset(commits)
    first = max(known)
    while first - 1 in known:
        first -= 1
    if first == 0:
        return ()
    base = min((version for version in checkpoints if version >= first - 1), default=None)
    if base is None:
        raise UnreadableLogError(
            f"its log begins at version {first}, and there is no whole checkpoint to begin from: the table is damaged,"
            " or the log is being cleaned up"
        )
    return tuple(sorted(version for version in checkpoints if version <= base))


def commits_of(listed: Iterable[ListedObject]) -> dict[int, ListedObject]:
    """Return the commits of a listing by their versions."""
    found = ((entry, _COMMIT.fullmatch(entry.key)) for entry in listed)
    return {int(match[1]): entry for entry, match in found if match is not None}
