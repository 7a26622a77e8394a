"""The handler's part in guarded writes: their leases while the child lives, their verdict when it is dead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from handler.observability import logger
from handler.process.bounded import OverdueError, within
from safewriter.errors import SafeWriterError
from safewriter.objects import StoreError

if TYPE_CHECKING:
    from handler.runs.records import OpenRun, Runs
    from safewriter.settle.supervisor import Supervision, WriteReport

__all__ = ["Guard", "Settled"]


@dataclass(frozen=True, slots=True)
class Settled:
    """The verdicts; `writes` is None if they could not be had, for the reason in `problem`. A problem beside verdicts:
    why there may be writes that they are not about.
    """

    writes: tuple[WriteReport, ...] | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Guard:
    """What is renewed and settled for one attempt."""

    supervision: Supervision
    runs: Runs
    run: OpenRun
    warn_before_ms: int

    def beat(self) -> bool:
        """Say that the attempt and its open writes live, and tell whether they shall: False once it was cancelled.

        Never raises: a missed beat is made up for by the next.
        """
        self.supervision.renew_leases()
        try:
            self.runs.renew_lease(self.run)
            return not self.runs.is_cancelled(self.run.record)
        except StoreError as error:
            logger.warning("the run's lease was not renewed: %s", error)
            return True

    def settle(self, budget_ms: int) -> Settled:
        """Settle every write that the child has opened, in bounded time; nothing of the child may run any more."""
        try:
            writes = within(budget_ms, lambda: self.supervision.settle(budget_ms=max(0, budget_ms)))
            return Settled(writes, self.supervision.doubt() or "")
        except OverdueError as error:
            return Settled(None, f"the store gave {error}")
        except (SafeWriterError, StoreError, OSError) as error:
            return Settled(None, f"{type(error).__name__}: {error}")
