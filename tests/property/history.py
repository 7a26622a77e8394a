"""A random history of one table: guarded writers that succeed, fail or die, a late network, OPTIMIZE and VACUUM.

Statements follow one another, blocks overlap. Whoever dies does it as a killed process does: nothing more of it is
sent, its sign of life stops, and whatever it has written stays.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from safewriter import SafeWriter
from safewriter.deadline import epoch_ms
from safewriter.errors import NotCommittedError
from safewriter.identity import canonical_table
from safewriter.objects.s3 import table_store
from safewriter.recovery import Cause, Evidence, Recovery
from safewriter.state import OPEN
from scripts.emulator.rules import Late, Match, Refuse, Rule
from scripts.soal.orphans.deleting import delete
from scripts.soal.orphans.protection import Attempts
from scripts.soal.orphans.survey import Survey
from tests.property.judge import check_verdicts, ids_after, retained_files
from tests.property.operations import draw
from tests.property.writers import Write, Writer, leave_behind
from tests.support.hygiene import wait_for_hygiene

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from scripts.emulator.s3 import EmbeddedS3
    from tests.property.operations import Operation
    from tests.support.lake import Lake

__all__ = ["History"]

COMMIT: Final = Match(operations={"PutObject"}, key_class="delta_log/commit")
HOURS_2_S: Final = 7200
_BASE: Final = range(12)
_VACUUM: Final = {
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # by default it lists in 10,000 tasks: a minute
}


class _PlannedError(Exception):
    """The user's own error."""


class History:
    """Plays `steps` random steps. The table's folder and rows are judged by `finish`."""

    def __init__(self, seed: int, spark: SparkSession, s3: EmbeddedS3, lake: Lake) -> None:
        self.random = random.Random(seed)  # noqa: S311 - a history is to be played again, not to be kept secret
        self.spark, self.s3, self.lake = spark, s3, lake
        self.writers = [Writer(name, spark.newSession()) for name in ("one", "two")]
        self.said: list[str] = [f"seed {seed}"]
        self.writes: dict[str, Operation] = {}
        self.dead: list[Write] = []
        self.late: list[Late] = []
        self.vacuumed = 0
        self.number = 0

    # -- the table ---------------------------------------------------------------------------------------------------

    def create(self) -> None:
        properties = {
            "delta.enableDeletionVectors": self.random.choice(["true", "true", "false"]),
            "delta.enableChangeDataFeed": self.random.choice(["true", "false"]),
            "delta.checkpointInterval": "6",
        }
        self.say(f"create {properties}")
        frame = self.spark.range(_BASE.start, _BASE.stop, 1, 2)
        frame.write.format("delta").options(**properties).save(self.lake.table)

    def say(self, what: str) -> None:
        self.said.append(what)

    def play(self, steps: int) -> None:
        """Play; whatever fails says which steps led there."""
        try:
            self.create()
            for _ in range(steps):
                self.step()
            self.finish()
        except BaseException as error:
            error.add_note("\n".join(self.said))
            raise
        finally:
            self.s3.wire.clear_rules()
            for one in self.writers:
                if one.block is not None:
                    one.vanish()
                one.thread.shutdown()
            self.s3.wire.clock_ahead_s = 0

    def step(self) -> None:
        one = self.random.choice(self.writers)
        idle = all(writer.block is None for writer in self.writers) and not self.dead
        if self.late and self.random.random() < 0.3:
            self.deliver()
        elif self.random.random() < 0.08:
            self.optimize()
        elif idle and self.number and self.random.random() < 0.25:
            self.vacuum()
        elif self.dead and self.random.random() < 0.4:
            self.recover()
        elif one.block is None:
            self.begin(one)
        elif one.has_written:
            self.end(one)
        else:
            self.statement(one)

    # -- guarded writers ---------------------------------------------------------------------------------------------

    def begin(self, one: Writer, *, is_new: bool = False) -> None:
        """Open a block: of a new write, or of one that died before, which may find that it has landed."""
        retries = self.dead and not is_new and self.random.random() < 0.5
        if retries:
            self.s3.wire.clock_ahead_s = 60  # the lease of the dead has run out
            write = self.dead.pop(self.random.randrange(len(self.dead)))
        else:
            self.number += 1
            operation = draw(self.random, self.number)
            write = Write(f"step-{self.number}", operation, self.random.choice(["write", "write", "success"]))
        how = "retries" if retries else "begins"
        self.say(f"{one.name} {how} {write.step}, {write.operation.name}, {write.commit_point}")
        block = SafeWriter(one.spark, self.lake.table, step=write.step, commit_point=write.commit_point)
        one.do(block.__enter__)
        self.s3.wire.clock_ahead_s = 0
        self.writes[block._block.write.key] = write.operation
        one.block, one.write, one.has_written = block, write, False

    def statement(self, one: Writer) -> None:
        """Let the block write; sometimes its commit never arrives, or late, and then it dies."""
        assert one.block is not None
        assert one.write is not None
        fault = self.random.choice([None] * 5 + ["lost", "late"])
        if self.random.random() < 0.1:
            self.die(one)
            return
        operation = one.write.operation
        self.say(f"{one.name} writes{f', its commit is {fault}' if fault else ''}")
        if fault is None:
            one.do(lambda: operation.run(one.spark, self.lake.table))
            one.has_written = True
            return
        action = Late(then=403) if fault == "late" else Refuse(403)  # not tried again for minutes
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
        how = self.random.choice(["success", "success", "success", "exception", "death"])
        if how == "death":
            self.die(one)
            return
        self.say(f"{one.name} ends with {how}")
        how = one.do(lambda: self._leave(block, how))
        one.block = one.write = None
        wait_for_hygiene()
        document = block.checkpoint
        assert document is not None
        stays = how == "success" or block.already_committed or document.undo_refused
        assert document.status == ("committed" if stays else "rolled_back")

    def _leave(self, block: SafeWriter, how: str) -> str:
        """End a block on its writer's thread; return how it has ended."""
        if how == "exception":
            block.__exit__(_PlannedError, _PlannedError(), None)
            return how
        before, effect = self.ids(), self.writes[block._block.write.key].effect
        try:
            block.success()
        except NotCommittedError as error:
            # The two writers share a Java machine. Who has changed nothing there cannot tell the other one's commit
            # from a script that has written with the wrong session.
            assert effect(before) == before
            block.__exit__(type(error), error, None)
            return "exception"
        block.__exit__(None, None, None)
        assert len(self.lake.live_versions(block._block.write.key)) == 1 or effect(before) == before
        return how

    def die(self, one: Writer) -> None:
        """End without a word, and leave what a killed process leaves: a closed file, an upload, a deletion vector."""
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
            self.dead.clear()  # nobody retries them

    def deliver(self) -> None:
        """Let the network deliver what it has held."""
        late = self.late.pop(self.random.randrange(len(self.late)))
        self.say(f"the network delivers: {[reply.status for reply in late.release()]}")

    def optimize(self) -> None:
        self.say("optimize")
        self.spark.sql(f"OPTIMIZE delta.`{self.lake.table}`").collect()

    def vacuum(self) -> None:
        """Only while no write is open: PROTOCOL.md says why."""
        self.say("vacuum")
        for key, value in _VACUUM.items():
            self.spark.conf.set(key, value)
        self.spark.sql(f"VACUUM delta.`{self.lake.table}` RETAIN 0 HOURS").collect()
        for key in _VACUUM:
            self.spark.conf.unset(key)
        self.vacuumed = len(self.lake.commits()) - 1

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
            operation = self.writes[alive.block._block.write.key]
            alive.do(lambda: operation.run(alive.spark, self.lake.table))
        self._end_alive(alive)
        # No task of it has failed, so its guard had no reason to look for what we have put in its name.
        self.judge(set(), excused=living)

    def _end_alive(self, alive: Writer) -> None:
        block = alive.block
        assert block is not None
        self.say(f"{alive.name} ends with success")
        alive.do(lambda: self._leave(block, "success"))
        alive.block = None
        wait_for_hygiene()

    def files(self) -> set[str]:
        """Return the keys of all files outside of the log, and of all unfinished uploads."""
        keys = {*self.lake.keys(), *(upload.key for upload in self.lake.store.uploads(""))}
        return {key for key in keys if not key.startswith("_delta_log/") and not key.endswith("/")}

    def ids(self) -> Counter[int]:
        return ids_after(self.lake, Counter(_BASE), self.writes)

    def judge(self, living: set[str], excused: set[str]) -> None:
        """Rows, verdicts and files, before and after `soal orphans`; `living` are files and upload of a live attempt.

        What recovery leaves is what bears no mark, and what is `excused`.
        """
        self.s3.wire.clock_ahead_s = HOURS_2_S
        recovery = Recovery(self.lake.checkpoints, table_store, clock=epoch_ms)
        for document in self.lake.documents():
            recovery.clean(document.write_key)
        self.say("judge")
        check_verdicts(self.lake)
        rows = Counter(row.id for row in self.spark.read.format("delta").load(self.lake.table).collect())
        assert rows == self.ids()
        needed = retained_files(self.spark, self.lake, self.vacuumed)
        assert (needed | living) - self.files() == set(), "something is gone that is needed"
        left = self.files() - needed - living - excused
        assert {key for key in left if not key.startswith("deletion_vector_")} == set(), "recovery has not cleaned up"

        table, store = canonical_table(self.lake.table), self.lake.store
        attempts = Attempts(self.lake.checkpoints.store, table)
        found = Survey(store, table, timedelta(hours=1), attempts, lambda _: None).look()
        report, problem = delete(store, *found, lambda _: None)
        assert (problem, report.has_failed) == (None, False)
        held = {one.key for one in report.orphans if one.held}
        assert self.files() == needed | living | held
        assert held <= living | left  # the younger ones of the dead cannot be told from those of the live attempt
        assert living or not held
        self.s3.wire.clock_ahead_s = 0
