"""The parts of a guarded block, built from settings and environment; opening and ending share them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

from safewriter.coordination.current import turn_of_this_thread
from safewriter.deadline import Deadline, epoch_ms
from safewriter.errors import UnsupportedError, UsageError
from safewriter.identity import Attempt, Run, Write
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import CommitPoint
from safewriter.schedule import Schedule
from safewriter.settings import Settings
from safewriter.settle.recovery import Recovery
from safewriter.tables.registry import format_for_scripts, format_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from pyspark.sql import SparkSession

    from safewriter.coordination.borrowed import BorrowedTurn
    from safewriter.coordination.turn import Turn
    from safewriter.tables.session import MicroBatch, Session

__all__ = ["Block"]

_STEP_MAX: Final = 4096
"""Characters: the journal, the document and the result all hold the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One attempt at one write. Without a deadline there is no `schedule`; without a coordinator there is no `turn`."""

    table: str
    write: Write
    attempt: Attempt
    commit_point: CommitPoint
    schedule: Schedule | None
    checkpoints: Checkpoints
    recovery: Recovery
    session: Session
    batch: MicroBatch | None
    journal: str | None
    turn: Turn | BorrowedTurn | None = None
    is_turn_given: bool = False

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        table: str,
        *,
        format: str,  # noqa: A002 - the word of Spark's own API
        step: str | None,
        commit_point: str = CommitPoint.WRITE,
        checkpoint_bucket: str | None = None,
        warn_before_ms: int | None = None,
        turn: Turn | BorrowedTurn | None = None,
        covers: str | None = None,
        open_session: Callable[[SparkSession, str], Session] | None = None,
    ) -> Self:
        """Build a block, which changes nothing yet; raises `SettingError`, `UnsupportedError` or `UsageError`.

        `open_session`: given by a library that writes the format and publishes through `Session.publish`. Without it
        the block belongs to a script, and the format must be one that Spark statements write.
        """
        from safewriter.objects.s3 import open_store, table_store

        if step is not None and not isinstance(step, str):
            raise UsageError(f"step={step!r} is no text; give the step a name that is the same on a retry")
        if step is not None and len(step) > _STEP_MAX:
            raise UsageError(f"a step of {len(step)} characters is too long; name it by at most {_STEP_MAX}")
        open_session = open_session or format_for_scripts(format).session
        table = table.rstrip("/")
        name = format_of(format).parse(table)
        settings = Settings.from_environment(
            os.environ, checkpoint_bucket=checkpoint_bucket, warn_before_ms=warn_before_ms
        )
        session = open_session(spark, table)
        batch = session.micro_batch()
        write = replace(_write(batch, name, format, step), covers=covers)
        deadline = Deadline.from_environment(os.environ)
        checkpoints = Checkpoints(open_store(settings.checkpoint_bucket))
        return cls(
            table=table,
            write=write,
            attempt=Attempt.draw(),
            commit_point=_commit_point(commit_point),
            schedule=None if deadline is None else Schedule.of(deadline, settings.warn_before_ms),
            checkpoints=checkpoints,
            recovery=Recovery(
                checkpoints,
                table_store,
                clock=epoch_ms,
                audit_log=settings.audit_log,
                may_go_on=lambda: deadline is None or deadline.remaining_ms() > 0,
                secrets=session.secrets,
            ),
            session=session,
            batch=batch,
            journal=os.environ.get("SOAL_JOURNAL"),
            turn=_turn_of(batch) if turn is None else turn,
            is_turn_given=turn is not None,
        )

    def check_surroundings(self) -> None:
        """Raise `UsageError` unless the block was made in the batch and in the turn in which it is entered."""
        if not self.is_turn_given and _turn_of(self.batch) is not self.turn:
            raise UsageError(
                "nothing was written: this SafeWriter was made outside the turn in which it is entered, so nothing"
                " would fence its write; make it in the turn, or pass turn="
            )
        if self.session.micro_batch() != self.batch:
            raise UsageError(
                "nothing was written: this SafeWriter was made outside the batch in which it is entered, so it has"
                " the name of another write; make a new one in foreachBatch for each batch"
            )

    @property
    def checkpoint_uri(self) -> str:
        """The URI of the checkpoint document."""
        return self.checkpoints.uri(self.write.key)

    @property
    def latest_start_ms(self) -> int | None:
        """Epoch milliseconds after which no commit may start; None: no limit."""
        return None if self.schedule is None else self.schedule.warn_at_ms

    @property
    def has_lost_turn(self) -> bool:
        """Whether another job may have the turn of this write by now."""
        return self.turn is not None and self.turn.left_s <= 0

    def patience_s(self, at_most_s: float, until: Callable[[Schedule], int]) -> float:
        """Return how long to wait at most: `at_most_s`, or until an instant of the schedule."""
        if self.schedule is None:
            return at_most_s
        return min(at_most_s, max(0, self.schedule.left_ms(until(self.schedule))) / 1000)


def _write(batch: MicroBatch | None, table: Hashable, format: str, step: str | None) -> Write:  # noqa: A002
    """Name the write by the run and the step; in `foreachBatch` by the stream, its batch and the step."""
    run = Run.from_environment(os.environ)
    if batch is None:
        return Write(run, table, format, step)
    name = f"batch {batch.batch_id}"
    return Write(
        run.of_stream(batch.query_id, batch.run_id), table, format, name if step is None else f"{step}, {name}"
    )


def _turn_of(batch: MicroBatch | None) -> Turn | BorrowedTurn | None:
    return turn_of_this_thread(None if batch is None else batch.run_id)


def _commit_point(text: str) -> CommitPoint:
    try:
        return CommitPoint(text)
    except ValueError:
        raise UnsupportedError(f"commit_point {text!r} is neither 'write' nor 'success'") from None
