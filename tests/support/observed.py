"""A guarded table's checkpoints, seen from outside: by boto3, never by the writer under test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from safewriter.objects.s3 import S3ObjectStore
from safewriter.record.checkpoints import Checkpoints

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from safewriter.record.document import Checkpoint

__all__ = ["CHECKPOINTS", "LAKE", "Observed"]

LAKE = "soal-lake"
CHECKPOINTS = "soal-checkpoints"


@dataclass(frozen=True)
class Observed(ABC):
    """One table of any format, and its documents in the checkpoint bucket."""

    client: S3Client

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(S3ObjectStore(self.client, CHECKPOINTS))

    def documents(self) -> list[Checkpoint]:
        found = [self.checkpoints.read(listed.key[12:-5]) for listed in self.checkpoints.store.list("checkpoints/")]
        return [stored.document for stored in found if stored is not None and self.is_named(stored.document.table)]

    def document(self) -> Checkpoint:
        (document,) = self.documents()
        return document

    def markers(self, document: Checkpoint) -> tuple[str, ...]:
        return tuple(one.nonce for one in self.checkpoints.marked() if one.write_key == document.write_key)

    @abstractmethod
    def is_named(self, table: str) -> bool:
        """Return whether a checkpoint that names `table` belongs to this one."""

    @abstractmethod
    def history(self) -> list[object]:
        """All commits that the table's readers can see, oldest first."""

    @abstractmethod
    def check(self) -> None:
        """Check that the files that the table needs exist, and that every settled document is true."""
