"""One of the three streams, with its own Spark driver: `python -m tests.lab.turns.job JOB`.

It answers once when ready, and once for each line on stdin (a `Task` as JSON), which names a group to run.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter

from safewriter import SafeWriter
from safewriter.coordination import Configuration, FirstRun, JobCoordinator
from safewriter.deadline import epoch_ms
from tests.lab.processes import answer, asked
from tests.lab.turns.events import Group, Window
from tests.lab.turns.pending import Pending
from tests.lab.turns.workload import INGESTION, Job
from tests.support.spark_session import build_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["LOCK", "Task"]

LOCK: Final = "ENGAGEMENT_HVS_DATA"
_PREDECESSOR: Final[dict[Job, Job]] = {"Ingestion": "TTL", "Mutation": "Ingestion", "TTL": "Mutation"}
_CONFLICT: Final = re.compile(r"Concurrent\w+Exception|DELTA_CONCURRENT_\w+")
_RESTARTS_MAX: Final = 200
_SIGNAL_S: Final = 240
_POLL_S: Final = 0.05
_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    # A few rows in a young JVM: compiling each query takes longer than interpreting it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@dataclass(frozen=True, slots=True)
class Task:
    """One group: its table, and the local folder with the input, the checkpoints, the signals and the events."""

    group: Group
    table: str
    folder: str


class Stream:
    """One job's stream in one group."""

    def __init__(self, spark: SparkSession, job: Job, task: Task) -> None:
        self.spark, self.job, self.task = spark, job, task
        self.folder = Path(task.folder)
        self.pending = Pending(self.folder / "checkpoints" / job / "pending")
        self.events = (self.folder / f"{job}.jsonl").open("a", encoding="utf-8", buffering=1)
        self.kept = self.taken_up = 0

    def start(self) -> StreamingQuery:
        function = self.window if self.task.group == "without" else self.coordinator.for_each_batch(self.window)
        return (
            self.spark.readStream.schema("id string, contact string")
            .option("maxFilesPerTrigger", 1)
            .json((self.folder / "input" / self.job).as_uri())
            .writeStream.foreachBatch(function)
            .option("checkpointLocation", (self.folder / "checkpoints" / self.job).as_uri())
            .trigger(availableNow=True)
            .start()
        )

    def run(self) -> None:
        """Run to the end of the input. Without a coordinator, restart the stream after a conflict."""
        if self.task.group == "with":
            first = FirstRun.RUN if self.job == INGESTION else FirstRun.WAIT
            self.coordinator = JobCoordinator(
                Configuration(
                    lock=LOCK, job=self.job, predecessor=_PREDECESSOR[self.job], first_run=first, poll_s=_POLL_S
                )
            )
            self.coordinator.run_stream(self.start)
            return
        from pyspark.errors import StreamingQueryException

        for _ in range(_RESTARTS_MAX):
            try:
                self.start().awaitTermination()
            except StreamingQueryException as error:
                if _CONFLICT.search(str(error)) is None:
                    raise
            else:
                return
        raise RuntimeError(f"{self.job} met more than {_RESTARTS_MAX} conflicts")

    def window(self, frame: DataFrame, batch: int) -> None:
        """Run one batch and record its window."""
        if self.task.group == "without":
            self._meet(batch)
        began_ms, self.kept, self.taken_up = epoch_ms(), 0, 0
        try:
            {"Ingestion": self.ingest, "Mutation": self.mutate, "TTL": self.delete}[self.job](frame, batch)
        except Exception as raised:
            error = " ".join(str(raised).split())[:300] or type(raised).__name__
            found = _CONFLICT.search(f"{type(raised).__name__} {raised}")
            self._note(batch, began_ms, "conflict" if found else "failed", found[0] if found else error)
            raise
        else:
            self._note(batch, began_ms, "landed", "")

    def ingest(self, frame: DataFrame, _: int) -> None:
        with SafeWriter(frame.sparkSession, self.task.table) as block:
            frame.selectExpr("id", "contact", "0 AS mutations").coalesce(1).write.format("delta").mode("append").save(
                block.table
            )
            block.success()

    def mutate(self, frame: DataFrame, batch: int) -> None:
        spark = frame.sparkSession
        taken_up = self.pending.before(batch)
        requests = {**taken_up, **{row.id: row.contact for row in frame.collect()}}
        table = spark.read.format("delta").load(self.task.table)
        there = {row.id for row in table.where(f"id IN ({_texts(requests)})").select("id").collect()}
        kept = self.pending.keep(batch, {one: requests[one] for one in requests if one not in there})
        self.kept, self.taken_up = len(kept), len(taken_up.keys() - kept.keys())
        values = ", ".join(f"({_text(one)}, {_text(requests[one])})" for one in requests if one not in kept)
        with SafeWriter(spark, self.task.table) as block:
            if values:
                spark.sql(
                    f"MERGE INTO delta.`{block.table}` t USING (SELECT * FROM VALUES {values} AS v(id, contact)) s"
                    " ON t.id = s.id WHEN MATCHED THEN UPDATE SET contact = s.contact, mutations = t.mutations + 1"
                )
            block.success()

    def delete(self, frame: DataFrame, _: int) -> None:
        gone = [row.id for row in frame.collect()]
        with SafeWriter(frame.sparkSession, self.task.table) as block:
            frame.sparkSession.sql(f"DELETE FROM delta.`{block.table}` WHERE id IN ({_texts(gone)})")
            block.success()

    # -- the first round without a coordinator: Mutation and TTL are made to collide ----------------------------------

    def _meet(self, batch: int) -> None:
        """Mutation and TTL begin once the first rows are there; Ingestion continues once both have committed or failed.

        So the next two commits to the table are theirs, and the S3 holds the first until the second arrives: each has
        read the table before the other has changed it.
        """
        if self.job != INGESTION:
            self._await("Ingestion-0")
        elif batch == 1:
            self._await("Mutation-0")
            self._await("TTL-0")

    def _note(self, batch: int, began_ms: int, outcome: str, error: str) -> None:
        window = Window.model_validate(
            {
                "group": self.task.group,
                "job": self.job,
                "batch": batch,
                "began_ms": began_ms,
                "ended_ms": epoch_ms(),
                "outcome": outcome,
                "error": error,
                "kept": self.kept,
                "taken_up": self.taken_up,
            }
        )
        self.events.write(f"{window.model_dump_json()}\n")
        (self.folder / f"{self.job}-{batch}.signal").touch()

    def _await(self, name: str) -> None:
        waited = threading.Event()
        for _ in range(int(_SIGNAL_S / _POLL_S)):
            if (self.folder / f"{name}.signal").exists():
                return
            waited.wait(_POLL_S)
        raise RuntimeError(f"{name} has not ended in {_SIGNAL_S} s")


def _text(text: str) -> str:
    return f"'{text}'"


def _texts(texts: dict[str, str] | list[str]) -> str:
    return ", ".join(map(_text, texts))


def main(name: str) -> None:
    """Run the stream of each group in turn."""
    job = TypeAdapter(Job).validate_python(name)
    spark = build_session(os.environ["AWS_ENDPOINT_URL_S3"], "local[1]", _SETTINGS)
    spark.sparkContext.setLogLevel("OFF")
    answer()
    for task in asked():
        Stream(spark, job, Task(**task)).run()
        answer()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
