"""The files that a table's retained versions and later commits refer to: read from its log, without Spark.

No retained version may be left out: `LogFiles` chooses the files of the log that must be read for that.
Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#checkpoints
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from soal.orphans.log_actions import UnreadableLogError, actions_of, file_keys, is_known, protocol_obstacle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from safewriter.objects import ListedObject, Location, ObjectStore, StoredObject

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


_PARALLEL: Final = 8


class LogMovedError(Exception):
    """The log is no longer the one that was read, so earlier conclusions do not hold."""


@dataclass(frozen=True, slots=True)
class Retained:
    """The log up to `version`. `keys`, relative to the table, are all files that a version refers to.

    `now` is the store's own clock when it was read. `head` is the newest commit as it was listed.
    """

    table: Location
    version: int
    head: ListedObject
    now: datetime
    keys: frozenset[str]
    partition_columns: frozenset[str]


@dataclass(slots=True)
class _Found:
    """The content of the actions, one file after the other."""

    table: Location
    keys: set[str]
    partition_columns: set[str]
    sidecars: set[str]

    def take(self, kind: str, action: dict[str, Any]) -> None:
        if not is_known(kind):
            raise UnreadableLogError(f"its log holds an action {kind!r}, which this soal does not know")
        self.keys |= file_keys(kind, action, self.table)
        if kind == "protocol" and (obstacle := protocol_obstacle(action)) is not None:
            raise UnreadableLogError(obstacle)
        if kind == "metaData":
            self.partition_columns.update(action.get("partitionColumns") or ())
        if kind == "sidecar":
            self.sidecars.add(f"{LOG}_sidecars/{action['path']}")

    def take_all(self, store: ObjectStore, keys: Iterable[str]) -> None:
        for found in _bodies(store, keys):
            for kind, action in actions_of(found.key, found.body):
                self.take(kind, action)


def read_retained(store: ObjectStore, table: Location) -> Retained:
    """Read the files that every readable version refers to; `store` is rooted at the table.

    Raises `UnreadableLogError` if the log holds anything unknown, `LogMovedError` if somebody cleans the log up at the
    same time.
    """
    files = LogFiles.of(store.list(LOG))
    head = store.get(files.head.key)
    if head is None:
        raise LogMovedError(f"{store.uri(files.head.key)} is gone")
    found = _Found(table, set(), set(), set())
    found.take_all(store, (*files.checkpoints, *files.commits.values()))
    sidecars = frozenset(found.sidecars)
    found.take_all(store, sorted(sidecars))
    if found.sidecars != sidecars:
        raise UnreadableLogError("a sidecar of its checkpoint names more sidecars")
    return Retained(
        table, files.version, files.head, head.server_date, frozenset(found.keys), frozenset(found.partition_columns)
    )


def follow(store: ObjectStore, known: Retained) -> Retained:
    """Return `known` with the commits since then added; one LIST if there are none.

    Raises `LogMovedError` if the newest known commit has changed or is gone: the table was dropped, recreated, or
    restored.
    """
    behind = store.list(LOG, start_after=f"{LOG}{known.version:020}")
    listed = list(takewhile(lambda entry: entry.key[len(LOG) :][:1].isdigit(), behind))
    if known.head not in listed:
        raise LogMovedError(f"version {known.version} of {store.uri('')} has changed or is gone since it was read")
    commits = commits_of(listed)
    since = sorted(version for version in commits if version > known.version)
    if since != list(range(known.version + 1, known.version + 1 + len(since))):
        raise LogMovedError(f"the log of {store.uri('')} has lost versions after {known.version}")
    if not since:
        return known
    found = _Found(known.table, set(), set(), set())
    found.take_all(store, (commits[version].key for version in since))
    return replace(
        known,
        version=since[-1],
        head=commits[since[-1]],
        keys=known.keys | found.keys,
        partition_columns=known.partition_columns | found.partition_columns,
    )


def _bodies(store: ObjectStore, keys: Iterable[str]) -> Iterator[StoredObject]:
    """Get many objects, some at a time."""
    wanted = list(keys)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        for start in range(0, len(wanted), _PARALLEL):
            batch = wanted[start : start + _PARALLEL]
            for key, found in zip(batch, pool.map(store.get, batch), strict=True):
                if found is None:
                    raise LogMovedError(f"{store.uri(key)} is listed, but no longer there: the log is being cleaned up")
                yield found
