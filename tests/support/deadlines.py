"""Deadlines that a test triggers: far away until the job has reached the intended point.

From the first warning to the answer, everything uses the real clock, with a lead that is long enough for a busy
machine.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from safewriter.deadline import Deadline, epoch_ms
from tests.support.waiting import BUSY_S, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

    from safewriter import SafeWriter

__all__ = ["FarDeadline", "put_clock_forward", "tasks_run", "wait_for_watchdog"]

_LEAD_MS: Final = 240_000


@dataclass
class FarDeadline:
    """The deadline of this process, an hour away; after `come` the watchdog has to act immediately."""

    deadline: Deadline
    ahead_ms: int = 0

    @classmethod
    def of(cls, monkeypatch: pytest.MonkeyPatch) -> FarDeadline:
        """Give every block that begins from now on this deadline."""
        now_ms = epoch_ms()
        far = cls(Deadline(now_ms + 3_600_000, now_ms))
        far.deadline = Deadline(far.deadline.at_ms, now_ms, lambda: epoch_ms() + far.ahead_ms)
        monkeypatch.setattr(Deadline, "from_environment", classmethod(lambda _, __: far.deadline))
        monkeypatch.setenv("SW_WARN_BEFORE_MS", str(_LEAD_MS))
        return far

    def come(self) -> None:
        """Advance the clock to the start of the lead time."""
        self.ahead_ms = self.deadline.at_ms - _LEAD_MS - epoch_ms()

    def come_when(self, holds: Callable[[], bool]) -> None:
        """Call `come` once `holds` returns true, while the caller continues."""

        def wait() -> None:
            if until(holds, timeout_s=BUSY_S):
                self.come()

        threading.Thread(target=wait, name="test-deadline", daemon=True).start()


def tasks_run(spark: SparkSession, count: int) -> bool:
    """Return whether a stage of `count` tasks is running."""
    tracker = spark.sparkContext.statusTracker()
    stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
    return any(stage is not None and stage.numTasks == count and stage.numActiveTasks for stage in stages)


def wait_for_watchdog(block: SafeWriter) -> None:
    """Wait until the block's watchdog has finished."""
    assert block._watchdog is not None
    assert block._watchdog.join(BUSY_S)


def put_clock_forward(file: Path) -> None:
    """Advance this process's clock by the milliseconds in the file, as soon as the file exists."""
    real = time.time_ns

    def now() -> int:
        try:
            return real() + int(file.read_text()) * 1_000_000
        except FileNotFoundError:
            return real()

    time.time_ns = now
