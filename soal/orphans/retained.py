"""The files that a table's retained versions and later commits refer to: read from its log, without Spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from soal.orphans.actions import actions_of
from soal.orphans.log_files import LOG, LogFiles, commits_of
from soal.orphans.references import UnreadableLogError, file_keys, is_known, protocol_obstacle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from safewriter.objects import ListedObject, Location, ObjectStore, StoredObject

__all__ = ["LogMovedError", "Retained", "follow", "read_retained"]

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
