"""A random history of one Delta table: guarded writers that succeed, fail or die, late requests, and neighbours.

Statements run one after the other; blocks overlap.
"""

from __future__ import annotations

import os
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Final

from safewriter import SafeWriter
from safewriter.deadline import epoch_ms
from safewriter.errors import UnsupportedError
from safewriter.objects.s3 import table_store
from safewriter.record.document import OPEN
from safewriter.settle.recovery import Cause, Evidence, Recovery
from soal.testing.s3.rules import Match, Refuse, Rule
from tests.property.folder import check_folder
from tests.property.judge import Log, check_metadata, check_verdicts, rows_at
from tests.property.neighbours import Neighbours
from tests.property.operations import ROWS, draw
from tests.property.playing import PlannedError, Play
from tests.property.writers import Write, Writer, leave_behind, new_session
from tests.support.hygiene import wait_for_hygiene
from tests.support.network_faults import Late

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.property.neighbours import Deltalake
    from tests.property.operations import Operation
    from tests.support.lake import Lake

__all__ = ["History"]

COMMIT: Final = Match(operations={"PutObject"}, key_class="delta_log/commit")
HOURS_2_S: Final = 7200
_BASE: Final = range(12)


class History(Play):
    """`finish` judges the table's folder and rows."""

    def __init__(self, seed: int, spark: SparkSession, s3: EmbeddedS3, lake: Lake, deltalake: Deltalake) -> None:
        self.writers = [Writer(name, new_session(spark)) for name in ("one", "two")]
        super().__init__(seed, spark, s3, self.writers)
        self.lake, self.log = lake, Log(lake)
        self.neighbours = Neighbours(self.random, spark, deltalake, self.log)
        self.writes: dict[str, Operation] = {}
        self.dead: list[Write] = []

    # -- the table ---------------------------------------------------------------------------------------------------

    def create(self) -> None:
        properties = {
            "delta.enableDeletionVectors": self.random.choice(["true", "false"]),
            "delta.enableChangeDataFeed": self.random.choice(["true", "false"]),
            "delta.checkpointInterval": "6",
        }
        self.say(f"create {properties}")
        frame = self.spark.range(_BASE.start, _BASE.stop, 1, 2)
        frame.write.format("delta").options(**properties).save(self.lake.table)

    def step(self) -> None:
        one = self.random.choice(self.writers)
        if self.late and self.random.random() < 0.3:
            self.deliver()
        elif self.random.random() < 0.25:
            self.neighbour()
        elif self.dead and self.random.random() < 0.3:
            self.recover()
        elif one.block is None:
            self.begin(one)
        elif not one.has_written:
            self.statement(one)
        elif self.random.random() < 0.6:
            self.end(one)
        else:  # between its commit and its end a block may take any time
            self.neighbour()

    # -- guarded writers ---------------------------------------------------------------------------------------------

    def begin(self, one: Writer, *, is_new: bool = False) -> None:
        """Open a block: of a new write, or of a dead one, which may have landed."""
        retries = self.dead and not is_new and self.random.random() < 0.5
        if retries:
            self.s3.wire.clock_ahead_s = 60  # the dead attempt's lease has expired
            write = self.dead.pop(self.random.randrange(len(self.dead)))
        else:
            self.number += 1
            operation = draw(self.random, self.number, ROWS, vectors=True)
            point = self.random.choice(["write", "write", "success"])
            may_be_undone = operation.kind == "append" and not self.log.without_undo()
            write = Write(f"step-{self.number}", operation, point if may_be_undone else "write")
        how = "retries" if retries else "begins"
        self.say(f"{one.name} {how} {write.step}, {write.operation}, {write.commit_point}")
        os.environ["SOAL_RUN_ID"] = uuid.uuid4().hex  # a retry is another attempt of the run
        block = SafeWriter(one.spark, self.lake.table, step=write.step, commit_point=write.commit_point)
        try:
            one.do(block.__enter__)
        except UnsupportedError:  # unknown to its first attempt
            assert retries
            assert write.commit_point == "success"
            assert self.log.without_undo()
            self.dead.append(write)
            return
        finally:
            self.s3.wire.clock_ahead_s = 0
        self.writes[block._block.write.key] = write.operation
        one.block, one.write, one.has_written = block, write, False

    def statement(self, one: Writer) -> None:
        """Let the block write; sometimes its commit is lost or late, and then the block dies."""
        assert one.block is not None
        assert one.write is not None
        fault = self.random.choice([None] * 5 + ["lost", "late"])
        if self.random.random() < 0.1:
            self.die(one)
            return
        operation = one.write.operation
        self.say(f"{one.name} writes{f', its commit is {fault}' if fault else ''}")
        if fault is None:
            self._write(one)
            return
        action = Late(then=403) if fault == "late" else Refuse(403)  # without retries for minutes
        self.s3.wire.add(Rule(COMMIT, action, times=None))
        try:
            one.do(lambda: operation.run(one.spark, self.lake.table))
        except Exception as error:  # noqa: BLE001 - it dies of whatever Delta makes of it
            self.say(f"  {type(error).__name__}")
        self.s3.wire.clear_rules()
        if isinstance(action, Late):
            self.late.append(action)
        self.die(one)

    def end(self, one: Writer) -> None:
        block = one.block
        assert block is not None
        how = self.random.choice(["success", "success", "exception", "exception", "death"])
        if how == "death":
            self.die(one)
            return
        self.say(f"{one.name} ends with {how}")
        one.do(lambda: self._leave(block, how))
        one.block = one.write = None
        wait_for_hygiene()
        document = block.checkpoint
        assert document is not None
        stays = how == "success" or block.already_committed or document.undo_refused
        assert document.status == ("committed" if stays else "rolled_back")

    def _write(self, one: Writer) -> None:
        assert one.write is not None
        operation = one.write.operation
        one.do(lambda: operation.run(one.spark, self.lake.table))
        one.has_written = True

    def _leave(self, block: SafeWriter, how: str) -> None:
        """End a block on its writer's thread."""
        if how == "exception":
            block.__exit__(PlannedError, PlannedError(), None)
            return
        block.success()
        block.__exit__(None, None, None)
        assert len(self.lake.live_versions(block._block.write.key)) == 1

    def die(self, one: Writer) -> None:
        """Die without cleaning up; like a killed process, leave a closed file, an upload and a deletion vector."""
        block, write = one.block, one.write
        assert block is not None
        assert write is not None
        self.say(f"{one.name} dies")
        one.vanish()
        if not block.already_committed:
            leave_behind(self.lake, block)
        one.block = one.write = None
        self.dead.append(write)

    # -- everything else ---------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Settle the dead from outside, one after the other, each twice."""
        self.say("recovery")
        self.s3.wire.clock_ahead_s = 60
        steps = {write.step for write in self.dead}
        recovery = Recovery(self.lake.checkpoints, table_store, clock=epoch_ms)
        for document in self.lake.documents():
            if document.step in steps and document.status in OPEN:
                for _ in range(2):
                    recovery.settle(document.write_key, Cause.OPERATOR, Evidence(document.epoch))
        self.s3.wire.clock_ahead_s = 0
        if self.random.random() < 0.5:
            self.dead.clear()  # they get no retry

    def neighbour(self) -> None:
        """Let a writer without SafeWriter change the table."""
        self.number += 1
        rows = self.rows_at()
        is_idle = all(writer.block is None for writer in self.writers) and not self.dead
        engine, operation = self.neighbours.draw(self.number, rows, is_idle=is_idle)
        self.say(f"a neighbour, {engine}: {operation}")
        self.neighbours.run(engine, operation, rows[-1])

    # -- the end -----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """End all but one block, recover, clean; then judge, end the last block, and judge again."""
        alive = self.random.choice(self.writers)
        for one in self.writers:
            if one is not alive and one.block is not None:
                self.end(one) if one.has_written else self.die(one)
        if alive.block is not None and alive.block.already_committed:
            self.end(alive)
        if alive.block is None:
            self.begin(alive, is_new=True)
        assert alive.block is not None
        living = leave_behind(self.lake, alive.block)
        self.recover()
        while self.late:
            self.deliver()
        self.judge(living, excused=set())
        if not alive.has_written:
            self._write(alive)
        self._end_alive(alive)
        # None of its tasks has failed, so its guard had no reason to look for the files put in its name.
        self.judge(set(), excused=living)

    def _end_alive(self, alive: Writer) -> None:
        block = alive.block
        assert block is not None
        self.say(f"{alive.name} ends with success")
        alive.do(lambda: self._leave(block, "success"))
        alive.block = None
        wait_for_hygiene()

    def rows_at(self) -> list[Counter[int]]:
        return rows_at(self.log, Counter(_BASE), self.log.operations(self.writes, self.neighbours.done))

    def judge(self, living: set[str], excused: set[str]) -> None:
        """Judge rows, verdicts and files; `living` are a live attempt's files and upload, `excused` those that may
        stay.
        """
        self.s3.wire.clock_ahead_s = HOURS_2_S
        self.say("judge")
        recovery = Recovery(self.lake.checkpoints, table_store, clock=epoch_ms)
        for document in self.lake.documents():
            recovery.clean(document.write_key)
        check_verdicts(self.log, self.log.operations(self.writes, self.neighbours.done))
        check_metadata(self.log)
        rows = Counter(row.id for row in self.spark.read.format("delta").load(self.lake.table).collect())
        assert rows == self.neighbours.rows() == self.rows_at()[-1]
        check_folder(self.spark, self.log, self.neighbours.vacuumed, living, excused)
        self.s3.wire.clock_ahead_s = 0
