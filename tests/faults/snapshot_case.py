"""One guarded build of a snapshot, and its invariants under any fault."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING
from unittest.mock import patch

from soal.testing.s3.rules import Match
from tests.faults.case import Case
from tests.faults.snapshot_victim import build
from tests.support.snapshot_prefix import SnapshotPrefix

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safewriter.snapshots import BuildResult
    from soal.testing.s3.embedded import EmbeddedS3

__all__ = ["MANIFEST", "POINTER", "SHARD", "SnapshotCase"]

SHARD = Match(operations={"PutObject"}, key=r"/shard\.db$")
MANIFEST = Match(operations={"PutObject"}, key=r"/manifests/")
POINTER = Match(operations={"PutObject"}, key=r"/_CURRENT$")

OLD = range(40)
NEW = range(20, 80)


class SnapshotCase(Case):
    """One prefix and one run. An old snapshot exists before it, or none (`is_first`)."""

    def __init__(self, spark: SparkSession, s3: EmbeddedS3, *, is_first: bool = False) -> None:
        self.prefix = SnapshotPrefix(s3.observer(), f"snapshots/{uuid.uuid4().hex}")
        super().__init__(spark, s3, self.prefix, "build")
        self.is_first = is_first
        if not is_first:
            with patch.dict(os.environ):
                del os.environ["SW_CHECKPOINT_BUCKET"]
                build(spark, self.prefix.uri, OLD.start, OLD.stop)
        self.kept = self.prefix.data()
        """The objects of the previous snapshot, which stays for a rollback."""

    def order(self, run_key: str) -> str:
        return f"{self.prefix.uri} {run_key} {NEW.start} {NEW.stop}"

    def check(self) -> None:
        """Check that `_CURRENT` opens, always complete: the old or the new snapshot, according to the verdict."""
        self.prefix.check()
        documents = self.prefix.documents()
        landed = bool(documents) and documents[0].status == "committed"
        found = self.prefix.published()
        if found is None:
            assert self.is_first
            assert not landed
            return
        wanted = {number.to_bytes(8, "big"): f"value {number}".encode() for number in (NEW if landed else OLD)}
        assert found.values == wanted
        self.prefix.check_routing()

    def write_again(self) -> BuildResult:
        return build(self.spark, self.prefix.uri, NEW.start, NEW.stop)

    def recover(self) -> None:
        """Recover; no object of a dead build is left."""
        super().recover()
        assert self.strays() == set()

    def retry(self) -> None:
        """Retry; no object of a dead build is left."""
        super().retry()
        assert self.strays() == set()

    def strays(self) -> set[str]:
        """The objects that neither the current nor the previous snapshot references."""
        return self.prefix.strays() - self.kept
