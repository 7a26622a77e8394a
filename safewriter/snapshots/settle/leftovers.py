"""The objects of a build that no manifest names: those of losing attempts, or all if the build was not published."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Final, Self

from safewriter.bounds import short
from safewriter.entropy import unique_id
from safewriter.objects.store import PreconditionFailed, StoreError, batches, is_there, paced
from safewriter.snapshots.format.build_record import RECORD_MAX_BYTES, ended, record_key
from safewriter.snapshots.format.current import manifest_key
from safewriter.snapshots.format.places import is_segment
from safewriter.tables.table import UndecidableError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from safewriter.objects.store import ObjectStore

__all__ = ["MANIFEST", "BuildId", "published_key"]

MANIFEST: Final = "manifest"
"""The property of an attempt that was found by its mark alone: the key of its manifest. Its other names are unknown."""
_FOLDER: Final = re.compile(r"[^/]+/run_id=[^/]+/[^/]+/attempt=\d+-[^/-]+-[^/]+")
"""The folder of a shard of any build."""
_BUILD: Final = re.compile("[0-9a-f]{16}")
_RUN: Final = re.compile("[^/]+")


@dataclass(frozen=True, slots=True)
class BuildId:
    """The names in the keys of a build's objects. A run may have several builds; `build` is new for each.

    `created_at`: ISO 8601, part of the keys of the manifest and of the run's record, which lies below `runs`.
    """

    run_id: str
    build: str
    shard_prefix: str
    runs: str
    created_at: str

    @classmethod
    def draw(cls, run_id: str, shard_prefix: str, runs: str, created: datetime) -> Self:
        """Return the names of a new build."""
        return cls(run_id, unique_id()[:16], shard_prefix, runs, created.isoformat())

    def document(self) -> dict[str, str]:
        """Return the names as a checkpoint document has them."""
        return asdict(self)

    @classmethod
    def read(cls, document: Mapping[str, str]) -> Self:
        """Read the names from a checkpoint document; raise `UndecidableError` for names that no build has."""
        names = cls(**{field.name: document.get(field.name, "") for field in fields(cls)})
        segments = is_segment(names.shard_prefix) and is_segment(names.runs) and bool(_RUN.fullmatch(names.run_id))
        if not segments or not _BUILD.fullmatch(names.build) or not _is_moment(names.created_at):
            raise UndecidableError(f"its document names {short(asdict(names))}, which no build is called")
        return names

    @property
    def created(self) -> datetime:
        """When the build began."""
        return datetime.fromisoformat(self.created_at)

    @property
    def run_prefix(self) -> str:
        """The prefix of the shards of all builds of the run."""
        return f"{self.shard_prefix}/run_id={self.run_id}/"

    @property
    def manifest_key(self) -> str:
        """The key of the build's manifest."""
        return manifest_key(self.run_id, self.created)

    @property
    def record_key(self) -> str:
        """The key of the run's record."""
        return record_key(self.runs, self.run_id, self.created, self.build)

    @property
    def _folder(self) -> re.Pattern[str]:
        return re.compile(rf"{re.escape(self.run_prefix)}[^/]+/attempt=\d+-{re.escape(self.build)}-[^/]+")

    def stored_shards(self, store: ObjectStore) -> int:
        """Return how many shards have objects of this build. Raises `StoreError`."""
        begin, pattern = len(self.run_prefix), self._folder
        keys = (entry.key for entry in store.list(self.run_prefix))
        return len({key[begin:].partition("/")[0] for key in keys if pattern.match(key)})

    def has_any(self, keys: Iterable[str]) -> bool:
        """Return whether one of these keys is a folder of the build's shards, or lies in one."""
        return any(map(self._folder.match, keys))

    def end_record(self, store: ObjectStore, now: datetime, *, published: bool) -> None:
        """Write the outcome into the record of a killed build; a record that already has one stays unchanged."""
        stored = store.get(self.record_key, max_bytes=RECORD_MAX_BYTES)
        if stored is None:
            return
        ref = store.uri(self.manifest_key) if published else None
        body = ended(stored.body, now, ref)
        if body is not None:
            with suppress(PreconditionFailed):  # another process has changed it
                store.replace(self.record_key, body, etag=stored.etag)

    def remove(
        self, store: ObjectStore, urls: Collection[str] | None, may_go_on: Callable[[], bool] = lambda: True
    ) -> int:
        """Delete this build's objects, except those in the folders that its manifest names, and abort its uploads.

        `urls` is None for a build that was not and cannot be published: its manifest is deleted, too. Returns the
        number of deleted objects. Raises `StoreError` if it could not finish.
        """
        root = store.uri("")
        keep = {url.removeprefix(root) for url in urls or ()}
        pattern = self._folder
        own = {folder for folder in keep if pattern.fullmatch(folder)}
        # An incremental build also names shards of earlier builds, and maybe none of its own.
        are_elsewhere = any(not _FOLDER.fullmatch(folder) for folder in keep - own)
        removed = 0
        if urls is None and is_there(store, self.manifest_key):
            store.delete(self.manifest_key)
            removed = 1

        def check_time() -> None:
            if not may_go_on():
                raise StoreError(
                    f"{store.uri(self.run_prefix)}: out of time while cleaning up, {removed} removed so far"
                )

        def is_left(key: str) -> bool:
            match = pattern.match(key)
            return match is not None and match[0] not in keep

        def keys() -> Iterator[str]:
            return (entry.key for entry in paced(store.list(self.run_prefix), check_time))

        folders = tuple(f"{folder}/" for folder in own)
        if are_elsewhere or (own and not any(key.startswith(folders) for key in keys())):
            raise StoreError(
                f"{store.uri(self.run_prefix)} has none of the shards that the manifest names; none is deleted"
            )
        for batch in batches(key for key in keys() if is_left(key)):
            check_time()
            store.delete_all(batch)
            removed += len(batch)
        for upload in paced(store.uploads(self.run_prefix), check_time):
            if is_left(upload.key):
                check_time()
                store.abort(upload)
        return removed


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def published_key(properties: Mapping[str, str]) -> str:
    """Return the key of the manifest that a committed attempt has published; raise `UndecidableError` if its document
    does not tell.
    """
    return properties.get(MANIFEST) or BuildId.read(properties).manifest_key
