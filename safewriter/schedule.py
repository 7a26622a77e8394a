"""The instants before a deadline, of an invocation and of a block, in one place and in order.

With the deadline D and the lead L, at most a quarter of the whole time:

| instant        | at          | act that happens then or ends then                                                |
|----------------|-------------|-----------------------------------------------------------------------------------|
| `begin_by`     | half time   | the handler waits for an earlier attempt, and cleans directories, before a job    |
| `warn_at`      | D - L       | the watchdog settles an open block; no claim and no commit starts after it        |
| `quiet_by`     | D - 3/4 L   | the watchdog waits for the block's statement and tasks to end                     |
| `terminate_at` | D - 1/2 L   | the handler sends SIGTERM to the job's processes                                  |
| `kill_at`      | D - 2/5 L   | the handler sends SIGKILL                                                         |
| `exit_at`      | D - 1/4 L   | the watchdog ends a process whose Java answers no call, if nobody has killed it   |
| `settle_by`    | D - 1/7 L   | the handler settles what the job left open, gives its turn back, removes its files|
| `record_by`    | D - 1/20 L  | the handler writes the run's record and its result                                |
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from safewriter.deadline import Deadline

__all__ = ["LEAD_MS", "Schedule"]

LEAD_MS: Final = 30_000
"""The lead, unless `SW_WARN_BEFORE_MS` sets another one."""
_LEAD_SHARE: Final = 4


@dataclass(frozen=True, slots=True)
class Schedule:
    """The instants before a deadline, in milliseconds since the epoch. Raises `ValueError` if they are out of order."""

    deadline: Deadline
    lead_ms: int

    def __post_init__(self) -> None:
        if any(early > late for early, late in pairwise(self.instants)):
            raise ValueError(f"a lead of {self.lead_ms} ms is too long for {self.deadline}")

    @classmethod
    def of(cls, deadline: Deadline, warn_before_ms: int) -> Schedule:
        """Plan with a lead of `warn_before_ms`, or of a quarter of the whole time if that is less."""
        return cls(deadline, min(warn_before_ms, max(0, deadline.at_ms - deadline.started_ms) // _LEAD_SHARE))

    @property
    def instants(self) -> tuple[int, ...]:
        """All instants in order; the last is the deadline."""
        return (
            self.begin_by_ms,
            self.warn_at_ms,
            self.quiet_by_ms,
            self.terminate_at_ms,
            self.kill_at_ms,
            self.exit_at_ms,
            self.settle_by_ms,
            self.record_by_ms,
            self.deadline.at_ms,
        )

    @property
    def begin_by_ms(self) -> int:
        return self.deadline.at_ms - max(0, self.deadline.at_ms - self.deadline.started_ms) // 2

    @property
    def warn_at_ms(self) -> int:
        return self.deadline.at_ms - self.lead_ms

    @property
    def quiet_by_ms(self) -> int:
        return self.deadline.at_ms - self.lead_ms * 3 // 4

    @property
    def terminate_at_ms(self) -> int:
        return self.deadline.at_ms - self.lead_ms // 2

    @property
    def kill_at_ms(self) -> int:
        return self.deadline.at_ms - self.lead_ms * 2 // 5

    @property
    def exit_at_ms(self) -> int:
        return self.deadline.at_ms - self.lead_ms // 4

    @property
    def settle_by_ms(self) -> int:
        return self.deadline.at_ms - self.lead_ms // 7

    @property
    def record_by_ms(self) -> int:
        return self.deadline.at_ms - self.lead_ms // 20

    def left_ms(self, instant_ms: int) -> int:
        """Return the time from now to an instant; negative once it has passed."""
        return instant_ms - self.deadline.clock()
