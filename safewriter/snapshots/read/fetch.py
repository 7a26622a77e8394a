"""Fetch a shard's file block by block, never whole in memory, and check its digest meanwhile."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, BinaryIO, Final

from safewriter.objects.store import StoreError
from safewriter.snapshots.errors import OtherDatabaseError, ReaderStateError, ShardDamagedError
from safewriter.snapshots.read.source import is_other_database, url_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.snapshots.format.manifest import Shard
    from safewriter.snapshots.read.source import Source

__all__ = ["fetch"]

_PAUSES_S: Final = (0.5, 1.0, 2.0, 4.0)


def fetch(
    source: Source,
    shard: Shard,
    file: BinaryIO,
    sleep: Callable[[float], None] = time.sleep,
    *,
    most_bytes: int | None = None,
) -> None:
    """Write a shard's content to a file; restart from the beginning after a `StoreError`, up to four times.

    Raises `ShardDamagedError` for more bytes than the manifest names, or without a size there than `most_bytes`, and
    for another SHA-256; `ReaderStateError` if the shard is not there or the disk is full, `OtherDatabaseError` if it is
    no SQLite file, `StoreError` if the store does not answer.
    """
    url, digest = url_of(shard), ""
    for pause_s in (*_PAUSES_S, None):
        try:
            digest = _copy(source, shard, file, most_bytes)
            break
        except StoreError as error:
            if error.denied or pause_s is None:
                raise
            sleep(pause_s)
        except OSError as error:
            raise ReaderStateError(
                f"{url} does not fit on this machine's disk: {error}. Take another folder"
            ) from error
    if shard.sha256 is not None and digest != shard.sha256:
        raise ShardDamagedError(
            f"{url} has the SHA-256 {digest}, and the manifest names {shard.sha256}: somebody has changed the object."
            " Go back to another snapshot, or build again"
        )


def _copy(source: Source, shard: Shard, file: BinaryIO, most_bytes: int | None) -> str:
    url, digest = url_of(shard), hashlib.sha256()
    if shard.sha256 is not None or shard.db_bytes:
        most_bytes = shard.db_bytes
    blocks = source.stream(url)
    if blocks is None:
        if is_other_database(shard, source.objects_of(shard)):
            raise OtherDatabaseError(
                f"{shard.db_url} is in another database than SQLite, which alone this code reads. If shardyfusion has"
                " built it, it is SlateDB: its reader and the package slatedb read it"
            )
        raise ReaderStateError(f"{url} is not there; refresh(), or check the snapshot")
    file.seek(0)
    for block in blocks:
        if most_bytes is not None and file.tell() + len(block) > most_bytes:
            limit = "the manifest names: somebody has changed the object" if shard.db_bytes else "the cache may hold"
            raise ShardDamagedError(
                f"{url} has more bytes than the {most_bytes:,} that {limit}. Go back to another snapshot, or build"
                " again"
            )
        digest.update(block)
        file.write(block)
    file.truncate()
    file.flush()
    return digest.hexdigest()
