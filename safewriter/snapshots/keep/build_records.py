"""Find the builds that are alive, by the records that they renew: `runs/<time>_run_id=<run id>_<token>/run.yaml`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from safewriter.objects.store import TooLarge
from safewriter.snapshots.format.build_record import RECORD_MAX_BYTES, fields_of
from safewriter.snapshots.format.places import is_segment
from safewriter.snapshots.keep.history import moment

if TYPE_CHECKING:
    from datetime import datetime

    from safewriter.objects.store import ObjectStore, StoredObject

__all__ = ["RecordedBuilds", "recorded_builds"]

_KEY: Final = re.compile(r"[^/]+/[^/]*?_run_id=(.+)_[^_/]+/run\.yaml", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RecordedBuilds:
    """The run ids of builds that are or may be alive, and the prefixes of all builds' shards. `unreadable`: the keys of
    records that this code cannot read. `count`: the number of records.
    """

    living: frozenset[str]
    shard_prefixes: frozenset[str]
    unreadable: tuple[str, ...] = ()
    count: int = 0


def recorded_builds(store: ObjectStore, prefix: str, now: datetime) -> RecordedBuilds:
    """Read all records. A run is dead if its record says that it has ended, or was not renewed within its lease.

    The lease ends by the store's clock or the writer's, whichever is later. A run with an unreadable record counts as
    living, whatever the record's age: there is no evidence that it is dead. Raises `StoreError` if a record may not be
    read.
    """
    living, prefixes, unreadable, count = set(), set(), [], 0
    for entry in store.list(f"{prefix}/"):
        match = _KEY.fullmatch(entry.key)
        if match is None:
            continue
        count += 1
        try:
            stored = store.get(entry.key, max_bytes=RECORD_MAX_BYTES)
            if stored is None:
                continue
            record = fields_of(stored.body)
            prefixes.add(_shard_prefix(record))
            lives = _lives(record, stored, now)
        except (KeyError, OverflowError, TooLarge, TypeError, ValueError):
            unreadable.append(entry.key)
            lives = True
        if lives:
            living.add(match[1])
    return RecordedBuilds(frozenset(living), frozenset(prefixes), tuple(unreadable), count)


def _shard_prefix(record: dict[str, Any]) -> str:
    """Return the prefix of the build's shards. It must be one segment: other data may lie deeper."""
    prefix = record["shard_prefix"]
    if not is_segment(prefix):
        raise ValueError("shard_prefix")
    return str(prefix)


def _lives(record: dict[str, Any], stored: StoredObject, now: datetime) -> bool:
    if record["status"] in ("succeeded", "failed"):
        return False
    if record["status"] != "running":
        raise ValueError(record["status"])
    ends, updated = moment(record["lease_expires_at"]), moment(record["updated_at"])
    return now < max(ends, stored.last_modified + (ends - updated))
