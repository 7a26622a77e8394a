"""Read a published snapshot by key. Thread-safe; shards are fetched at their first use."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
import weakref
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from safewriter.snapshots.checks import check_count
from safewriter.snapshots.errors import ManifestParseError, ReaderStateError
from safewriter.snapshots.read.cache import CacheFolder, usable
from safewriter.snapshots.read.snapshot import Snapshot
from safewriter.snapshots.read.source import Source
from safewriter.snapshots.read.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from safewriter.snapshots.format.current import ManifestAt
    from safewriter.snapshots.format.encoding import Key
    from safewriter.snapshots.format.manifest import Manifest
    from safewriter.snapshots.read.source import OpenStore
    from safewriter.snapshots.read.verification import Verification

__all__ = ["SnapshotReader"]


class SnapshotReader:
    """Reads the snapshot that was current when it was opened, or last refreshed.

    A pickled reader is opened again where it is unpickled, with the same snapshot: Spark's tasks may use one.

    Raises `ConfigValidationError` for an invalid parameter, `ReaderStateError` if nothing was published yet, or the
    cache has no usable folder, `ManifestParseError` if the snapshot cannot be read, `StoreError` if the store does not
    answer.

    Parameters
    ----------
    s3_prefix
        The prefix of the snapshots, `s3://bucket/prefix`.
    open_store
        Opens a bucket or prefix by its location; default: boto3 with the configuration of the environment.
    cache
        A folder for the shards' files, which other readers and processes may share, and which stays; default: a folder
        of this reader, which is removed with it.
    cache_limit_bytes
        The maximum size of the cache. Files that are out of use are removed first, the least recently used before
        others, then open shards in the order of their opening. One shard may exceed the limit. Default: no limit.
    manifest_ref
        The manifest of another snapshot than the current one, which `refresh` goes over to.
    meter
        A meter of OpenTelemetry's API, for metrics of this reader. A pickled reader has none.
    """

    def __init__(
        self,
        s3_prefix: str,
        *,
        open_store: OpenStore | None = None,
        cache: Path | str | None = None,
        cache_limit_bytes: int | None = None,
        manifest_ref: str | None = None,
        meter: Any = None,  # noqa: ANN401 - of a package that need not be there
    ) -> None:
        if cache_limit_bytes is not None:
            check_count("cache_limit_bytes", cache_limit_bytes)
        self._source = Source(s3_prefix, open_store)
        self._again = partial(
            SnapshotReader, s3_prefix, open_store=open_store, cache=cache, cache_limit_bytes=cache_limit_bytes
        )
        self._looked_s = time.monotonic()
        named = self._source.named(manifest_ref)
        self._refreshing = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._telemetry = None if meter is None else Telemetry(meter, self)
        self._remove: Callable[[], object] | None = None
        try:
            with usable(named.ref):
                if cache is None:
                    cache = Path(tempfile.mkdtemp(prefix="soal-snapshot-"))
                    self._remove = weakref.finalize(self, _remove, cache, os.getpid())
                self._cache = CacheFolder(Path(cache), cache_limit_bytes)
                self._cache.make_room(0)
            self._snapshot = self._of(named)
        except BaseException as error:
            self.close()
            if isinstance(error, ManifestParseError) and manifest_ref is None:
                raise ManifestParseError(
                    f"{error}. It is the current snapshot; go back to an earlier one by a rollback"
                ) from error
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(self._again, manifest_ref=self.manifest_ref), ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def manifest(self) -> Manifest:
        """The snapshot that is read."""
        return self._opened().manifest

    @property
    def manifest_ref(self) -> str:
        """The URL of its manifest."""
        return self._opened().ref

    @property
    def age_s(self) -> float:
        """The seconds since the reader was opened or refreshed, when this snapshot was the current one."""
        return time.monotonic() - self._looked_s

    def get(self, key: Key, *, routing_context: Mapping[str, object] | None = None) -> bytes | None:
        """Return the value of a key; None if the snapshot has no such key.

        `routing_context`: the row's values of the other columns that determine its shard, if there are any.

        Raises `KeyRangeError` for an invalid key, `RoutingContextError` for a missing or invalid context,
        `ReaderStateError`, `ShardDamagedError`, `OtherDatabaseError` or `StoreError` if the shard cannot be read.
        Integers may be NumPy's.
        """
        if self._telemetry is None:
            return (self._snapshot or self._opened()).value(key, routing_context)
        with self._telemetry.reading("get"):
            return self._opened().value(key, routing_context)

    def multi_get(
        self, keys: Iterable[Key], *, routing_context: Mapping[str, object] | None = None
    ) -> dict[Key, bytes | None]:
        """Return the values of keys, in their order, all of one snapshot; raises as `get` does."""
        value = self._opened().value
        if self._telemetry is None:
            return {key: value(key, routing_context) for key in keys}
        keys = list(keys)
        with self._telemetry.reading("multi_get"):
            return {key: value(key, routing_context) for key in keys}

    def scan(self, start: Key | None = None, stop: Key | None = None) -> Iterator[tuple[Key, bytes | None]]:
        """Yield the keys from `start` on and before `stop`, with their values, all of one snapshot, in ascending order:
        of integers, or of the bytes of texts. None: without a bound.

        By the hash of the key each range has keys of all shards, so this fetches all, unless the manifest says that a
        shard has none. Where other columns decide, a key may come twice. Raises as `get` does, at the latest when the
        row is reached.
        """
        return self._opened().scan(start, stop)

    def route(self, key: Key, *, routing_context: Mapping[str, object] | None = None) -> int | None:
        """Return the shard that a key belongs to; None if no shard can have it."""
        return self._opened().shard_of(key, routing_context)

    def refresh(self) -> bool:
        """Switch to the snapshot that is current now; return whether that is another one.

        A call in progress ends with the snapshot that it began with. Raises `ManifestParseError`, `ReaderStateError` or
        `StoreError` if the current snapshot cannot be read; the reader then keeps its own.
        """
        with self._refreshing:
            began_s = time.monotonic()
            named = self._source.named()
            changed = named.ref != self._opened().ref
            if changed:
                self._snapshot = self._of(named)
            self._looked_s = began_s
            if self._telemetry is not None:
                self._telemetry.refreshed(changed=changed)
            return changed

    def verify(self, *, keys_max: int | None = None) -> Verification:
        """Check the snapshot's shards in the store. `keys_max`: how many keys of each shard to route again."""
        from safewriter.snapshots.read.verification import verify

        return verify(self._source, self._opened().ref, keys_max=keys_max)

    def close(self) -> None:
        """Close the shards. Remove the cache if it is this reader's own, and not that of a parent process."""
        self._snapshot = None
        if self._remove is not None:
            self._remove()

    def _of(self, named: ManifestAt) -> Snapshot:
        if self._telemetry is None:
            return Snapshot(named, self._source, self._cache)
        return Snapshot(named, self._source, self._cache, self._telemetry.fetched)

    def _opened(self) -> Snapshot:
        snapshot = self._snapshot
        if snapshot is None:
            raise ReaderStateError("the reader is closed")
        return snapshot


def _remove(folder: Path, pid: int) -> None:
    """Remove a reader's own cache, unless this process is a forked child, whose parent still uses it."""
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)
