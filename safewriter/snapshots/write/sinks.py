"""Sinks for the rows of a shard: a SQLite file that the task uploads, or the caller's own database."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from safewriter.snapshots.format.shard_file import FILE_NAME, ShardFile, sha256_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import TracebackType

    from safewriter.snapshots.write.upload import Uploader

__all__ = ["AdapterFactory", "AdapterSink", "DbAdapter", "Sink", "SqliteSink", "StoredShard"]


class DbAdapter(Protocol):
    """One shard in the caller's own database, with the interface of shardyfusion's adapters. `__exit__` closes it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> object: ...

    def write_batch(self, pairs: Iterable[tuple[bytes, bytes]]) -> object:
        """Write keys and values, sorted by key, each key once."""
        ...

    def flush(self) -> object:
        """Make the written rows durable."""
        ...

    def seal(self) -> object:
        """End the shard: nothing more is written."""
        ...

    def db_bytes(self) -> int:
        """Return the size of the sealed shard, at most that of its objects below `db_url`."""
        ...

    def close(self) -> object:
        """Release the adapter's resources."""
        ...


class AdapterFactory(Protocol):
    """Opens an adapter, in a task, so it must be picklable.

    `db_url` is new for each attempt, which alone writes below it. `local_dir` is empty, and removed afterwards.
    """

    def __call__(self, *, db_url: str, local_dir: Path) -> DbAdapter: ...


@dataclass(frozen=True, slots=True)
class StoredShard:
    """A complete shard at its URL. `sha256` is None if it is not a single file."""

    rows: int
    db_bytes: int
    sha256: str | None


class Sink(Protocol):
    """One shard in progress."""

    def add(self, keys: list[bytes], values: list[bytes]) -> None:
        """Add rows, sorted by key."""
        ...

    def finish(self) -> StoredShard:
        """Complete the shard, and store it at its URL."""
        ...

    def abandon(self, error: BaseException) -> None:
        """Release the resources of a failed shard. Raises nothing."""
        ...


class SqliteSink:
    """A SQLite file, uploaded when it is complete."""

    def __init__(self, url: str, folder: Path, uploader: Uploader) -> None:
        folder.mkdir()
        self._url, self._folder, self._uploader = url, folder, uploader
        self._file = ShardFile(folder / FILE_NAME)
        self._file.__enter__()

    def add(self, keys: list[bytes], values: list[bytes]) -> None:
        self._file.add(keys, values)

    def finish(self) -> StoredShard:
        rows = self._file.stored_rows()
        self._file.__exit__(None)
        path = self._file.path
        digest, size = sha256_of(path), path.stat().st_size
        self._uploader.upload(path, f"{self._url}/{FILE_NAME}")
        shutil.rmtree(self._folder)
        return StoredShard(rows, size, digest)

    def abandon(self, error: BaseException) -> None:  # noqa: ARG002 - of the protocol
        self._file.close()


class AdapterSink:
    """The caller's own database. No manifest names the objects of a failed attempt."""

    def __init__(self, url: str, folder: Path, factory: AdapterFactory) -> None:
        folder.mkdir()
        self._folder = folder
        self._rows = 0
        self._adapter = factory(db_url=url, local_dir=folder).__enter__()

    def add(self, keys: list[bytes], values: list[bytes]) -> None:
        self._adapter.write_batch(zip(keys, values, strict=True))
        self._rows += len(keys)

    def finish(self) -> StoredShard:
        self._adapter.flush()
        self._adapter.seal()
        size = self._adapter.db_bytes()
        self._adapter.__exit__(None, None, None)
        shutil.rmtree(self._folder)
        return StoredShard(self._rows, size, None)

    def abandon(self, error: BaseException) -> None:
        with suppress(Exception):
            self._adapter.__exit__(type(error), error, error.__traceback__)
