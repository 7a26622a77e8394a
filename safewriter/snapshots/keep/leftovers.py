"""The objects of one build that no manifest names: its losing attempts, or all of it if it was not published."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Self

from safewriter.objects.store import StoreError
from safewriter.snapshots.format.current import manifest_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from safewriter.objects.store import ObjectStore
    from safewriter.snapshots.format.manifest import Manifest

__all__ = ["BuildId"]


@dataclass(frozen=True, slots=True)
class BuildId:
    """The names by which the objects of a build are known. A run may have several builds; `build` is new for each.

    `created_at`: ISO 8601, part of the manifest's key.
    """

    run_id: str
    build: str
    shard_prefix: str
    created_at: str

    @classmethod
    def draw(cls, run_id: str, shard_prefix: str, created: datetime) -> Self:
        """Name a new build."""
        return cls(run_id, uuid.uuid4().hex[:16], shard_prefix, created.isoformat())

    def document(self) -> dict[str, str]:
        """Return the names as a checkpoint records them."""
        return {
            "run_id": self.run_id,
            "build": self.build,
            "shard_prefix": self.shard_prefix,
            "created_at": self.created_at,
        }

    @classmethod
    def read(cls, document: Mapping[str, str]) -> Self:
        """Read them back."""
        return cls(document["run_id"], document["build"], document["shard_prefix"], document["created_at"])

    @property
    def run_prefix(self) -> str:
        """The prefix of the shards of all builds of the run."""
        return f"{self.shard_prefix}/run_id={self.run_id}/"

    @property
    def manifest_key(self) -> str:
        """The key of the build's manifest."""
        return manifest_key(self.run_id, datetime.fromisoformat(self.created_at))

    def remove(
        self, store: ObjectStore, published: Manifest | None, may_go_on: Callable[[], bool] = lambda: True
    ) -> int:
        """Delete this build's objects, but those that `published` names; return their number, and abort its uploads.

        None: the build is not published, and never will be. Raises `StoreError` if the work could not be finished.
        """
        root = store.uri("")
        keep = () if published is None else {shard.db_url.removeprefix(root) for shard in published.shards}
        own = re.compile(rf"{re.escape(self.run_prefix)}[^/]+/attempt=\d+-{re.escape(self.build)}-[^/]+")
        removed = 0
        if published is None and store.get(self.manifest_key) is not None:
            store.delete(self.manifest_key)
            removed = 1

        def is_left(key: str) -> bool:
            if not may_go_on():
                raise StoreError(
                    f"{store.uri(self.run_prefix)}: out of time while cleaning up, {removed} removed so far"
                )
            found = own.match(key)
            return found is not None and found[0] not in keep

        for listed in list(store.list(self.run_prefix)):
            if is_left(listed.key):
                store.delete(listed.key)
                removed += 1
        for upload in list(store.uploads(self.run_prefix)):
            if is_left(upload.key):
                store.abort(upload)
        return removed
