"""A prefix of snapshots in memory, with its own clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from safewriter.snapshots.format.current import CURRENT, Current, manifest_key
from safewriter.snapshots.read.reader import SnapshotReader
from safewriter.snapshots.read.source import Source
from safewriter.snapshots.write.publish import Publisher
from tests.support.snapshots import PREFIX, Bucket, Folder, build, publish

ROWS = {number: b"%d" % number for number in range(20)}


class World:
    """A prefix whose store has the clock `now`; `publish` takes an hour, and `lose` more than two."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 1, tzinfo=UTC)
        self.bucket = Bucket(now=lambda: self.now)
        self.folder: Any = Folder(self.bucket, "kv/")
        self.source = Source(PREFIX, self.bucket.opened)
        self.publisher = Publisher(self.folder, sleep=lambda _: None, now=lambda: self.now)

    def passes(self, **how: float) -> None:
        self.now += timedelta(**how)

    def publish(self, run: str, rows: Any = None, **how: Any) -> str:
        ref = publish(self.folder, rows or ROWS, run, created=self.now, **how)
        self.passes(hours=1)
        return ref

    def lose(self, run: str) -> str:
        """Build a snapshot, and let another build publish first."""
        base = self.publisher.base()
        manifest = build(self.folder, ROWS, run, created=self.now)
        self.passes(minutes=1)
        self.publish(f"faster-than-{run}")
        with pytest.raises(Exception, match="has changed since this build began") as refused:
            self.publisher.publish(manifest, base)
        self.passes(hours=1)
        return str(refused.value.manifest_ref)  # type: ignore[attr-defined]

    def forge(self, run: str) -> str:
        """Put a manifest in the name of a run, of a day that is far away."""
        created = datetime(9999, 1, 1, tzinfo=UTC)
        manifest = build(self.folder, dict.fromkeys(ROWS, b"forged"), run, created=created)
        self.folder.put(manifest_key(run, created), manifest.encode())
        return str(self.folder.uri(manifest_key(run, created)))

    def current(self) -> Current:
        return Current.decode(self.folder.get(CURRENT).body, CURRENT)

    def keys(self, prefix: str = "") -> list[str]:
        return [listed.key for listed in self.folder.list(prefix)]

    def read(self) -> dict[Any, bytes | None]:
        with SnapshotReader(PREFIX, open_store=self.bucket.opened) as reader:
            return reader.multi_get(ROWS)


@pytest.fixture
def world() -> World:
    return World()
