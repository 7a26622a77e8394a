"""Carry out scripts, one at a time, in one JVM: the table before, the attempts, and the table after each.

deltalake and pyiceberg read the tables, never the Spark that has written them.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from unittest.mock import patch

import pyarrow as pa

from handler.spark_settings.own_disk import OWN_DISK
from safewriter.objects.s3 import S3ObjectStore
from safewriter.record.checkpoints import Checkpoints
from tests.lab.campaign.record import ScriptAttempt, ScriptRecord
from tests.lab.campaign.warm import WarmSpark
from tests.lab.campaign.wrong.attempt import Run, attempted
from tests.lab.campaign.wrong.job import WrongJob
from tests.lab.campaign.wrong.judging import SUCCESS, Told, violations_of
from tests.lab.experiment.ground import CHECKPOINTS, Ground
from tests.lab.experiment.tables import LAKE, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safewriter.record.document import Checkpoint
    from tests.lab.campaign.wrong.script import Ids, Script

__all__ = ["WrongLaboratory"]

_WAREHOUSE: Final = "spark.sql.warehouse.dir"
_TEMPORARY: Final = "spark.hadoop.hadoop.tmp.dir"
_SAID_MAX: Final = 4000


class WrongLaboratory:
    """A context manager: one S3 of the backend `s3`, and one JVM."""

    def __init__(self, s3: str) -> None:
        self._ground = Ground(s3)
        self._warm = WarmSpark()
        # Python's workers use this process's packages.
        self._python = patch.dict(os.environ, PYSPARK_PYTHON=sys.executable)

    def __enter__(self) -> Self:
        self._ground.__enter__()
        self._python.start()
        # As in the function: outside of the temporary folder no local path may hold a table, nor may the warehouse.
        temporary = self._ground.folder / "tmp"
        temporary.mkdir()
        settings = {_WAREHOUSE: f"{self._ground.folder}/warehouse", _TEMPORARY: str(temporary), **OWN_DISK}
        self._warm = WarmSpark(settings, str(temporary))
        return self

    def __exit__(self, *_: object) -> None:
        self._warm.stop()
        self._python.stop()
        self._ground.__exit__()

    def carry_out(self, script: Script) -> ScriptRecord:
        """Carry out all attempts of a script. Any error of the harness itself is a violation, too."""
        began = time.monotonic()
        error: str | None = None
        attempts: list[ScriptAttempt] = []
        with tempfile.TemporaryDirectory(dir=self._ground.folder) as folder:
            case = _Case(script, self._ground, self._warm, Path(folder))
            try:
                told, attempts = case.play()
                violations = violations_of(script, told)
            except Exception:  # noqa: BLE001 - it must be counted, and the tier goes on
                error = traceback.format_exc()[-_SAID_MAX:]
                violations = ["harness_error"]
        return ScriptRecord(
            script=script.name,
            family=script.family,
            format=script.table_format,
            attempts=attempts,
            violations=violations,
            seconds=round(time.monotonic() - began, 1),
            error=error,
        )


class _Case:
    """One script while it runs."""

    def __init__(self, script: Script, ground: Ground, warm: WarmSpark, folder: Path) -> None:
        self._script, self._warm, self._folder = script, warm, folder
        name = f"{script.name}-{uuid.uuid4().hex[:8]}"
        self._client = ground.s3.observer()
        self._place = ground.place(name, str(folder))
        self._table = table_of(script.table_format, self._place)
        self._checkpoints = Checkpoints(S3ObjectStore(self._client, CHECKPOINTS, name))
        variables = {**ground.variables(name), "SW_CHECKPOINT_BUCKET": f"{CHECKPOINTS}/{name}"}
        self._run = Run(name, variables, folder, self._checkpoints.store)
        self._attempt = 1

    def play(self) -> tuple[list[Told], list[ScriptAttempt]]:
        """Make the table, carry out the attempts, and return what was seen after each."""
        script = self._script
        if script.prepare is not None:
            script.prepare(self._job())
        elif script.before or script.table_format == "iceberg":
            self._table.make(pa.table({"id": pa.array(script.before, pa.int64())}))
        if (found := self._table.ids()) != script.before:
            raise RuntimeError(f"the table holds {found} before the script")
        told, attempts = [], []
        for self._attempt in range(1, script.attempts + 1):
            if self._attempt > 1 and script.between is not None:
                script.between(self._job())
            code = f"{script.name} {self._attempt if script.is_mended else 1}"
            outcome = attempted(self._run, code, self._carry_out)
            seen = self._seen(outcome.state.value)
            told.append(seen)
            attempts.append(
                ScriptAttempt(
                    state=seen.state,
                    details=outcome.details[:_SAID_MAX],
                    verdicts=[str(document.status) for document in self._documents()],
                    found=list(seen.found),
                )
            )
        return told, attempts

    def _carry_out(self) -> None:
        job = self._job()
        try:
            self._script.run(job)
        finally:
            _leave_nothing(self._warm.session({}))

    def _job(self) -> WrongJob:
        return WrongJob(
            spark=self._session(),
            table=self._table.name,
            table_format=self._script.table_format,
            attempt=self._attempt,
            lake=f"s3a://{LAKE}/{self._place.prefix}-others",
            folder=self._folder,
            checkpoints=self._checkpoints,
            start_spark=self._session,
        )

    def _session(self) -> SparkSession:
        return self._warm.session(self._table.settings)

    def _seen(self, state: str) -> Told:
        documents = self._documents()
        one = documents[0] if len(documents) == 1 else None
        others = {name: self._ids_of(name) for name in self._script.others} if state == SUCCESS else None
        return Told(
            state=state,
            found=self._table.ids(),
            verdict=None if one is None else str(one.status),
            is_incomplete=any(getattr(document, "incomplete", None) is not None for document in documents),
            others=others,
        )

    def _ids_of(self, other: str) -> Ids:
        return table_of("delta", replace(self._place, prefix=f"{self._place.prefix}-others/{other}")).ids()

    def _documents(self) -> list[Checkpoint]:
        found = [self._checkpoints.read(one.key[12:-5]) for one in self._checkpoints.store.list("checkpoints/")]
        return [stored.document for stored in found if stored is not None]


def _leave_nothing(spark: SparkSession) -> None:
    """Clear what an attempt has left in Java: in the function, its next attempt finds none of it."""
    for query in spark.streams.active:
        query.stop()
    for table in spark.catalog.listTables():
        with suppress(Exception):  # whatever the script has done to it; the laboratory deletes its folder
            spark.sql(f"DROP TABLE IF EXISTS {table.name}")
    spark.catalog.clearCache()
    context = spark.sparkContext
    for key in ("spark.jobGroup.id", "spark.job.description", "spark.scheduler.pool"):
        context.setLocalProperty(key, None)  # type: ignore[arg-type]
