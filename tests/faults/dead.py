"""A dead attempt, and a recovery that is hit at every one of its mutating requests, the same for every format.

The attempt is made once, by a real kill, and restored for each try. Its settlers need no Spark.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from safewriter.deadline import epoch_ms
from safewriter.objects.s3 import table_store
from safewriter.settle.recovery import Cause, Recovery
from soal.testing.s3.rules import Rule
from tests.faults.case import ANY, Phase, fault
from tests.support.lake import CHECKPOINTS, LAKE
from tests.support.network_faults import Late
from tests.support.processes import Child
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.observed import Observed

__all__ = ["Dead", "Settlers", "faults_at_every_request"]

PHASES: tuple[Phase, ...] = ("before", "after", "late", "lost")
BOUNDARIES_MAX = 40


class Pointers:
    """The tables' pointers in an Iceberg catalog on a SQLite file, restored while other processes have it open."""

    def __init__(self, database: Path) -> None:
        self._database = database
        with closing(sqlite3.connect(database)) as connection:
            self._rows: list[tuple[Any, ...]] = connection.execute("SELECT * FROM iceberg_tables").fetchall()

    def put_back(self) -> None:
        marks = ", ".join("?" * len(self._rows[0]))
        with closing(sqlite3.connect(self._database, timeout=60)) as connection, connection:  # in one transaction
            connection.execute("DELETE FROM iceberg_tables")
            connection.executemany(f"INSERT INTO iceberg_tables VALUES ({marks})", self._rows)


class Settlers:
    """Settler processes, one after the other."""

    def __init__(self, s3: EmbeddedS3, lake_format: str) -> None:
        environment = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
        self._parent = Child("tests.faults.settler", lake_format, environment=environment)
        self._parent.expect("ready")
        self._told = 0

    def settle(self, write_key: str) -> bool:
        """Settle a write in a process of its own; return whether it finished."""
        self._told += 1
        self._parent.tell(write_key)
        self._parent.expect(f"ended {self._told}")
        return f"settled {self._told}" in self._parent.lines

    def kill(self) -> None:
        """SIGKILL the current settler."""
        self._parent.kill_below()

    def said(self) -> str:
        return self._parent.said()

    def close(self) -> None:
        self._parent.kill()


class Dead:
    """A dead attempt with all objects on S3, and its catalog's pointers if the table has a catalog."""

    def __init__(self, s3: EmbeddedS3, table: Observed, settlers: Settlers, database: Path | None = None) -> None:
        self._s3, self._client, self._table, self._settlers = s3, s3.observer(), table, settlers
        self._write_key = table.document().write_key
        self._pointers = None if database is None else Pointers(database)
        self._etags = self._found()
        self._bodies = {where: self._body(*where) for where in self._etags}

    def _found(self) -> dict[tuple[str, str], str]:
        pages = [
            (bucket, page)
            for bucket in (LAKE, CHECKPOINTS)
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        ]
        return {(bucket, row["Key"]): row["ETag"] for bucket, page in pages for row in page.get("Contents", ())}

    def _body(self, bucket: str, key: str) -> bytes:
        return self._client.get_object(Bucket=bucket, Key=key)["Body"].read()

    def put_back(self) -> None:
        """Undo all changes since its death."""
        found = self._found()
        for bucket, key in found.keys() - self._etags.keys():
            self._client.delete_object(Bucket=bucket, Key=key)
        for bucket, key in [where for where, etag in self._etags.items() if found.get(where) != etag]:
            self._client.put_object(Bucket=bucket, Key=key, Body=self._bodies[bucket, key])
        if self._pointers is not None:
            self._pointers.put_back()

    def settle(self) -> None:
        """Settle it without a fault."""
        recovery = Recovery(self._table.checkpoints, table_store, clock=epoch_ms)
        recovery.settle(self._write_key, Cause.KILLED)
        recovery.clean(self._write_key)

    def settle_and_be_hit(self, phase: Phase, boundary: int) -> Late | None:
        """Settle it in a process that is hit at a mutating request; return the late request, or None if there was no
        such request.
        """
        late = Late(end=self._settlers.kill)
        rule = self._s3.wire.add(Rule(ANY, fault(phase, self._settlers.kill, late), nth=boundary))
        has_ended = self._settlers.settle(self._write_key)
        self._s3.wire.clear_rules()
        # A catalog's server completes pending requests.
        assert until(lambda: self._s3.wire.is_quiet)
        assert rule.hits or has_ended, self._settlers.said()
        return late if rule.hits else None


def faults_at_every_request(dead: Dead, judge: Callable[[str], None]) -> int:
    """Hit a recovery at each of its requests, in every way, then repeat it, let the late request land, and repeat it
    again; `judge` checks the table. Return the number of faults.
    """
    faults = 0
    for phase in PHASES:
        for boundary in range(1, BOUNDARIES_MAX):
            dead.put_back()
            late = dead.settle_and_be_hit(phase, boundary)
            if late is not None:
                faults += 1
                dead.settle()
                late.release()
                dead.settle()
            judge(f"{phase}, request {boundary}")
            if late is None:
                assert boundary > 3, phase  # at least the verdict, the mark of the clean-up, and the marker
                break
        else:
            raise AssertionError(f"no recovery of {BOUNDARIES_MAX} ended unhurt")
    return faults
