"""A random history of one Iceberg table: guarded writers that succeed, fail or die, with their publication sent or not,
late requests, settlers that come early or late, and neighbours who maintain, rename and replace the table.
"""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Final

from safewriter import SafeWriter, writer
from safewriter.deadline import epoch_ms
from safewriter.errors import UnknownOutcomeError, UnsupportedError
from safewriter.objects.s3 import table_store
from safewriter.record.document import OPEN, Status
from safewriter.settle.recovery import Cause, Evidence, Recovery
from tests.property.iceberg_judge import Watched
from tests.property.iceberg_neighbours import Foreigners, reader
from tests.property.iceberg_publications import Publications
from tests.property.iceberg_writers import Stager, Work, draw_rows, leave, sql
from tests.property.playing import PlannedError, Play
from tests.property.writers import new_session
from tests.support.hygiene import wait_for_hygiene

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safewriter.record.document import Checkpoint
    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.ice import Ice

__all__ = ["IcebergHistory"]

_ENDS: Final = (
    *["success"] * 5, *["exception"] * 2, *["lost", "late", "refused"],
    *["death", "death, published", "death, published late"],
)  # fmt: skip
"""How a block ends: `lost`, `late` and `refused` ones call success(), and a fault hits their publication."""


class IcebergHistory(Play):
    """The rows are judged after each step, the verdicts by `finish`."""

    def __init__(self, seed: int, spark: SparkSession, s3: EmbeddedS3, ice: Ice) -> None:
        self.writers = [Stager(name, new_session(spark)) for name in ("one", "two")]
        super().__init__(seed, spark, s3, self.writers)
        for one in self.writers:
            for key, value in ice.catalog.settings().items():
                one.spark.conf.set(key, value)
        self.ice = ice
        self.watched = Watched(ice, reader(spark, ice.catalog.settings()))
        self.foreigners = Foreigners(self.random, spark, self.watched)
        self.dead: list[Work] = []
        self.publications = Publications(s3.wire, self.late, rest=ice.catalog.spark["type"] == "rest")

    def create(self) -> None:
        self.say(f"create {self.foreigners.create()}")

    def step(self) -> None:
        one, chance = self.random.choice(self.writers), self.random.random
        if self.late and chance() < 0.3:
            self.deliver()
            self.watched.look()
        elif chance() < (0.6 if self.foreigners.is_away else 0.25):
            self.neighbour()
        elif self.dead and chance() < 0.25:
            self.recover()
        elif one.block is None:
            self.begin(one, self.draw())
        elif one.todo:
            self.statement(one)
        elif not one.usurped and chance() < 0.1:
            self.usurp(one)
        else:
            self.end(one, self.random.choice(_ENDS))

    # -- guarded writers ---------------------------------------------------------------------------------------------

    def draw(self) -> Work:
        """Draw a new write, or a dead one, which may have landed."""
        if self.dead and self.random.random() < 0.5:
            return self.dead.pop(self.random.randrange(len(self.dead)))
        numbers = range(self.number + 1, self.number + 1 + self.random.choice([1, 1, 2, 3]))
        self.number = numbers[-1]
        return Work(f"step-{self.number}", tuple(draw_rows(self.random, number) for number in numbers))

    def begin(self, one: Stager, work: Work) -> None:
        """Open a block."""
        self.s3.wire.clock_ahead_s = 60  # the dead attempt's lease has expired
        self.say(f"{one.name} begins {work.step}: {', '.join(map(str, work.operations))}")
        os.environ["SOAL_RUN_ID"] = uuid.uuid4().hex  # a retry is another attempt of the run
        block = SafeWriter(one.spark, self.ice.name, format="iceberg", step=work.step)
        try:
            one.do(block.__enter__)
        except (UnsupportedError, UnknownOutcomeError) as error:
            self.say(f"  {type(error).__name__}")
            if not self.is_undecidable(work.step):
                raise
            if isinstance(error, UnsupportedError):
                self.dead.append(work)
            return
        finally:
            self.s3.wire.clock_ahead_s = 0
        document = block.checkpoint
        assert document is not None
        assert block.already_committed == self.watched.has_landed(document.write_key) or document.reason is not None
        if not block.already_committed:
            self.watched.expect(document.attempt.prefix.rstrip("-"), work.operations)
        self.watched.look()
        one.block, one.work, one.todo, one.usurped = block, work, list(work.operations), False
        one.expired = False
        one.rows, one.found, one.changes = self.watched.rows, self.watched.table().metadata_location, False

    def is_undecidable(self, step: str) -> bool:
        """Return whether a write's table is not there under its name, or was another one."""
        own = [document for document in self.ice.documents() if document.step == step]
        found = str(self.watched.table().metadata.table_uuid)
        return self.foreigners.is_away or any(document.attempt.table_id != found for document in own)

    def statement(self, one: Stager) -> None:
        """Let the block write; only it sees its rows. A skipped block sees the table as it is."""
        block, operation = one.block, one.todo.pop(0)
        assert block is not None
        self.say(f"{one.name} writes {operation}")
        before, one.rows = one.rows, operation.effect(one.rows)
        one.changes |= before != one.rows
        try:
            one.do(lambda: one.spark.sql(sql(operation, block.table)).collect())
            seen = one.do(lambda: sorted(row.id for row in one.spark.table(block.table).select("id").collect()))
        except Exception as error:
            if not one.expired or "NotFoundException" not in str(error):
                raise
            self.say("  its snapshot is gone")
            self.end(one, "exception")
            return
        self.watched.look()
        shown = self.watched.rows if block.already_committed else one.rows
        assert seen == sorted(shown.elements())

    def usurp(self, one: Stager) -> None:
        """Settle a live block as if it were dead; the block is stopped meanwhile, and then continues."""
        block, work = one.block, one.work
        assert block is not None
        assert work is not None
        if block.already_committed:
            return
        self.say(f"somebody settles {one.name}")
        assert block._heartbeat is not None
        block._heartbeat.stop()
        writer._registry.close(one.spark, block._block.write)  # its retry is another process
        one.usurped = True
        self.dead.append(work)
        self.settle({work.step})

    def end(self, one: Stager, how: str) -> None:
        self.say(f"{one.name} ends with {how}")
        if how.startswith("death"):
            self.die(one, how)
        elif how == "exception":
            block = one.block
            assert block is not None
            one.do(lambda: block.__exit__(PlannedError, PlannedError(), None))
            self.judge_end(one, PlannedError(), may_be_open=self.foreigners.is_away)
        else:
            self.publications.hit(how, self.random)
            self.succeed(one, is_hit=how != "success")
        self.watched.look()

    def succeed(self, one: Stager, *, is_hit: bool) -> None:
        block, work = one.block, one.work
        assert block is not None
        assert work is not None
        same = self.watched.table().metadata_location == one.found
        undecidable = self.is_undecidable(work.step)
        error = one.do(lambda: leave(block))
        self.s3.wire.clear_rules()
        self.watched.look()
        if error is not None:
            self.say(f"  {type(error).__name__}: {error}")
            assert isinstance(error, UnknownOutcomeError) <= undecidable, error
        if (work.is_one_append or same) and not (is_hit or one.usurped or undecidable):
            assert error is None, "nothing stood in its way"
        self.judge_end(one, error, may_be_open=is_hit or undecidable)

    def judge_end(self, one: Stager, error: Exception | None, *, may_be_open: bool) -> None:
        """Check that an ended block's document agrees with its result. It may be open if the fence was hit."""
        block, work = one.block, one.work
        assert block is not None
        assert work is not None
        key, usurped = block._block.write.key, one.usurped
        wait_for_hygiene()
        (document,) = (found for found in self.ice.documents() if found.write_key == key)
        one.block = one.work = None
        self.watched.look()
        if block.already_committed or (error is None and not usurped):
            assert document.status is Status.COMMITTED
            assert self.watched.has_landed(key) or not one.changes
        elif error is None:
            assert not one.changes or document.status is Status.COMMITTED, "it was settled by others, and says success"
        elif document.status in OPEN:
            assert may_be_open or usurped
            self.dead.append(work)
        elif not usurped and not isinstance(error, UnknownOutcomeError):
            assert document.status is Status.ROLLED_BACK, document
            assert not self.watched.has_landed(key)

    def die(self, one: Stager, how: str) -> None:
        """Die without cleaning up: before the publication, after it, or while it is pending."""
        block, work = one.block, one.work
        assert block is not None
        assert work is not None
        if "published" in how and not block.already_committed:
            self.publications.hit("late" if "late" in how else "success", self.random)
            try:
                one.do(block._block.session.publish)
            except Exception as error:  # noqa: BLE001 - whatever Iceberg makes of it, nobody hears of it
                self.say(f"  {type(error).__name__}")
            self.s3.wire.clear_rules()
        one.vanish()
        one.block = one.work = None
        if work not in self.dead:
            self.dead.append(work)

    # -- everything else ---------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Settle the dead from outside, one after the other, each twice."""
        self.say("recovery")
        self.settle({work.step for work in self.dead})
        if self.random.random() < 0.5:
            self.dead.clear()  # they get no retry

    def settle(self, steps: set[str]) -> None:
        recovery = Recovery(self.ice.checkpoints, table_store, clock=epoch_ms)
        for document in self._open(steps):
            for _ in range(2):
                try:
                    recovery.settle(document.write_key, Cause.KILLED, Evidence(document.epoch))
                except UnknownOutcomeError:
                    assert self.is_undecidable(str(document.step))
            self.watched.look()

    def _open(self, steps: set[str]) -> list[Checkpoint]:
        return [one for one in self.ice.documents() if one.step in steps and one.status in OPEN]

    def neighbour(self) -> None:
        """Let a writer without SafeWriter change the table."""
        self.number += 1
        chance = self.random.random()
        # The fence of an attempt that may still publish must not be dropped: docs/guides/operating.md.
        is_calm = not self.late and all(one.block is None for one in self.writers)
        if self.foreigners.is_away or chance < 0.08:
            what = self.foreigners.rename()
        elif chance < 0.12:
            what = self.foreigners.replace()
        else:
            what = self.foreigners.act(self.number, may_drop_fences=is_calm)
        self.say(f"a neighbour: {what}")
        for one in self.writers:
            one.expired |= what == "expire_snapshots"

    # -- the end -----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """End all blocks, let late requests land, recover and judge; then retry the dead writes, and judge again."""
        if self.foreigners.is_away:
            self.say(f"a neighbour: {self.foreigners.rename()}")
        for one in self.writers:
            if one.block is not None:
                self.end(one, "death" if one.todo else "success")
        self.s3.wire.clock_ahead_s = 60
        retried = [work for work in self.dead if not self.is_undecidable(work.step)]
        self.settle({str(document.step) for document in self.ice.documents()})
        while self.late:
            self.deliver()
            self.watched.look()
        self.say("judge")
        self.watched.check_verdicts()
        self.watched.check_files()
        self.dead.clear()
        for work in retried:
            self.retry(self.writers[0], work)
        self.watched.check_verdicts()
        self.watched.check_files()

    def retry(self, one: Stager, work: Work) -> None:
        """An undisturbed retry writes the batch."""
        self.begin(one, work)
        while one.todo:
            self.statement(one)
        self.end(one, "success")
