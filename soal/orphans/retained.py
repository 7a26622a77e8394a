"""The files to which a table's retained versions and later commits refer, read from its log without Spark.

No retained version may be missed: `LogFiles` chooses the log files that must be read.
Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#checkpoints
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from soal.orphans.log_actions import (
    NoTableError,
    UnreadableLogError,
    actions_of,
    file_keys,
    is_known,
    protocol_obstacle,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from safewriter.objects import ListedObject, Location, ObjectStore, StoredObject

LOG: Final = "_delta_log/"
_COMMIT: Final = re.compile(r"_delta_log/(\d{20})\.json")
_WHOLE: Final = re.compile(r"_delta_log/(\d{20})\.checkpoint(\.[0-9a-f-]{36})?\.(parquet|json)")
_PART: Final = re.compile(r"_delta_log/(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet")
_PARALLEL: Final = 8
_FORMATS: Final = "delta.universalFormat.enabledFormats"


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The log files to read: `commits` by version, and the keys of the `checkpoints` that replace older commits.

    `head` is the newest commit in the listing.
    """

    commits: dict[int, str]
    checkpoints: tuple[str, ...]
    head: ListedObject

    @property
    def version(self) -> int:
        """The newest version."""
        return max(self.commits)

    @classmethod
    def of(cls, objects: Iterable[ListedObject]) -> LogFiles:
        """Choose from a listing of the log. Raises `UnreadableLogError` if it contains no complete version."""
        entries = list(objects)
        commits = commits_of(entries)
        checkpoints: dict[int, list[str]] = {}
        parts: dict[tuple[int, int], dict[int, str]] = {}
        for entry in entries:
            if match := _WHOLE.fullmatch(entry.key):
                checkpoints.setdefault(int(match[1]), []).append(entry.key)
            elif match := _PART.fullmatch(entry.key):
                parts.setdefault((int(match[1]), int(match[3])), {})[int(match[2])] = entry.key
        for (version, count), keys in parts.items():
            if len(keys) == count:
                checkpoints.setdefault(version, []).extend(keys.values())
        if not commits:
            raise NoTableError("there is no Delta table: its log holds no commit")
        head = max(commits)
        return cls(
            {version: entry.key for version, entry in sorted(commits.items())},
            tuple(key for version in _versions_needed(commits, checkpoints) for key in checkpoints[version]),
            commits[head],
        )


def _versions_needed(commits: Iterable[int], checkpoints: Iterable[int]) -> tuple[int, ...]:
    """Return the versions whose checkpoints must be read besides all existing commits.

    Every readable version consists of a checkpoint and the commits after it. So all files that these versions need are
    in the oldest checkpoint of the unbroken sequence of commits, or were added or removed by those commits. Before a
    gap, a version is readable if it has a checkpoint.
    """
    versions = frozenset(commits)
    first = max(versions)
    while first - 1 in versions:
        first -= 1
    if first == 0:
        return ()
    oldest = min((version for version in checkpoints if version >= first - 1), default=None)
    if oldest is None:
        raise UnreadableLogError(
            f"its log begins at version {first}, and there is no whole checkpoint to begin from: the table is damaged,"
            " or the log is being cleaned up"
        )
    return tuple(sorted(version for version in checkpoints if version <= oldest))


def commits_of(objects: Iterable[ListedObject]) -> dict[int, ListedObject]:
    """Return the commits of a listing by version."""
    matches = ((entry, _COMMIT.fullmatch(entry.key)) for entry in objects)
    return {int(match[1]): entry for entry, match in matches if match is not None}


class LogMovedError(Exception):
    """The log is not the one that was read, so earlier conclusions no longer hold."""


@dataclass(frozen=True, slots=True)
class Retained:
    """The log up to `version`. `keys`, relative to the table, are all files to which any version refers.

    `now` is the store's clock at the read. `head` is the newest commit in the listing.
    """

    table: Location
    version: int
    head: ListedObject
    now: datetime
    keys: frozenset[str]
    partition_columns: frozenset[str]
    formats: frozenset[str]
    """The other formats as whose tables a version says that this one can be read."""


@dataclass(slots=True)
class _Content:
    """Collects the content of actions."""

    table: Location
    keys: set[str]
    partition_columns: set[str]
    sidecars: set[str]
    formats: set[str] = field(default_factory=set)

    def take(self, kind: str, action: dict[str, Any]) -> None:
        if not is_known(kind):
            raise UnreadableLogError(f"its log holds an action {kind!r}, which this soal does not know")
        self.keys |= file_keys(kind, action, self.table)
        if kind == "protocol" and (obstacle := protocol_obstacle(action)) is not None:
            raise UnreadableLogError(obstacle)
        if kind == "metaData":
            self.partition_columns.update(action.get("partitionColumns") or ())
            self.formats.update(str(dict(action.get("configuration") or ()).get(_FORMATS)).lower().split(","))
        if kind == "sidecar":
            self.sidecars.add(f"{LOG}_sidecars/{action['path']}")

    def take_all(self, store: ObjectStore, keys: Iterable[str]) -> None:
        for stored in _bodies(store, keys):
            for kind, action in actions_of(stored.key, stored.body):
                self.take(kind, action)


def read_retained(store: ObjectStore, table: Location) -> Retained:
    """Read the files to which any readable version refers; `store` is rooted at the table.

    Raises `UnreadableLogError` if the log contains anything unknown, `LogMovedError` if another process cleans up the
    log at the same time.
    """
    files = LogFiles.of(store.list(LOG))
    head = store.get(files.head.key)
    if head is None:
        raise LogMovedError(f"{store.uri(files.head.key)} is gone")
    log = _Content(table, set(), set(), set())
    log.take_all(store, (*files.checkpoints, *files.commits.values()))
    sidecars = frozenset(log.sidecars)
    log.take_all(store, sorted(sidecars))
    if log.sidecars != sidecars:
        raise UnreadableLogError("a sidecar of its checkpoint names more sidecars")
    return Retained(
        table,
        files.version,
        files.head,
        head.server_date,
        frozenset(log.keys),
        frozenset(log.partition_columns),
        frozenset(log.formats),
    )


def follow(store: ObjectStore, retained: Retained) -> Retained:
    """Return `retained` with the commits since then added; one LIST if there are none.

    Raises `LogMovedError` if the newest known commit has changed or is gone: the table was dropped, recreated, or
    restored.
    """
    behind = store.list(LOG, start_after=f"{LOG}{retained.version:020}")
    objects = list(takewhile(lambda entry: entry.key[len(LOG) :][:1].isdigit(), behind))
    if retained.head not in objects:
        raise LogMovedError(f"version {retained.version} of {store.uri('')} has changed or is gone since it was read")
    commits = commits_of(objects)
    since = sorted(version for version in commits if version > retained.version)
    if since != list(range(retained.version + 1, retained.version + 1 + len(since))):
        raise LogMovedError(f"the log of {store.uri('')} has lost versions after {retained.version}")
    if not since:
        return retained
    log = _Content(retained.table, set(), set(), set())
    log.take_all(store, (commits[version].key for version in since))
    return replace(
        retained,
        version=since[-1],
        head=commits[since[-1]],
        keys=retained.keys | log.keys,
        partition_columns=retained.partition_columns | log.partition_columns,
        formats=retained.formats | log.formats,
    )


def _bodies(store: ObjectStore, keys: Iterable[str]) -> Iterator[StoredObject]:
    """Yield many objects, fetched in parallel batches. Raises `LogMovedError` if one is gone."""
    names = list(keys)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        for start in range(0, len(names), _PARALLEL):
            batch = names[start : start + _PARALLEL]
            for key, stored in zip(batch, pool.map(store.get, batch), strict=True):
                if stored is None:
                    raise LogMovedError(f"{store.uri(key)} is listed, but no longer there: the log is being cleaned up")
                yield stored
