"""A table, its checkpoint bucket and a clock for `soal orphans`, without the command line."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING

from safewriter.identity import canonical_table
from soal.orphans.protection import Attempts
from soal.orphans.survey import Survey, delete
from tests.unit.safewriter.surroundings import TABLE
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from safewriter.objects import ObjectStore
    from soal.orphans.report import OrphanReport

WEEK = timedelta(days=7)
LOCATION = canonical_table(TABLE)


def data_key(folder: str = "") -> str:
    return f"{folder}part-00000-{uuid.uuid4()}-c000.snappy.parquet"


def vector_key(folder: str = "") -> str:
    return f"{folder}deletion_vector_{uuid.uuid4()}.bin"


class Bench:
    """Objects that are put after `ages` are young, all others old."""

    def __init__(self) -> None:
        self.world = World()
        self.lake = self.world.lake
        self.seen: list[int] = []

    def put(self, *keys: str) -> None:
        for key in keys:
            self.lake.put(key, b"left behind")

    def ages(self, days: float = 8) -> None:
        """Let time pass, by the store's clock."""
        self.world.sleep(days * 86_400)

    def survey(self, store: ObjectStore | None = None, *, guarded: bool = True) -> Survey:
        attempts = Attempts(self.world.bucket, LOCATION) if guarded else None
        return Survey(store or self.lake, LOCATION, WEEK, attempts, self.seen.append)

    def look(self, store: ObjectStore | None = None, *, guarded: bool = True) -> OrphanReport:
        return self.survey(store, guarded=guarded).look()[0]

    def free(self, *, guarded: bool = True) -> set[str]:
        """Return the keys of the files that would be deleted."""
        return {one.key for one in self.look(guarded=guarded).orphans if one.held is None}

    def delete(self) -> OrphanReport:
        report, problem = delete(self.lake, *self.survey().look(), self.seen.append)
        assert problem is None
        return report
