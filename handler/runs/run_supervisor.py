"""The handler as supervisor: it renews leases while the child runs, and settles open writes when it is dead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from handler.observability import logger
from handler.process.bounded_call import OverdueError, within
from safewriter.errors import SafeWriterError
from safewriter.objects import StoreError

if TYPE_CHECKING:
    from handler.runs.store import OpenRun, Runs
    from safewriter.settle.supervisor import Supervision, WriteReport

__all__ = ["RunSupervisor"]


@dataclass(frozen=True, slots=True)
class RunSupervisor:
    """Renews the leases of one attempt while its job runs, and settles its open writes afterwards."""

    supervision: Supervision
    runs: Runs
    run: OpenRun

    def beat(self) -> bool:
        """Renew the leases of the run and of its open writes; False if the run was cancelled.

        Never raises: the next beat makes up for a missed one.
        """
        self.supervision.renew_leases()
        try:
            self.runs.renew_lease(self.run)
            return not self.runs.is_cancelled(self.run.record)
        except StoreError as error:
            logger.warning("the run's lease was not renewed, or its cancellation could not be read: %s", error)
            return True

    def settle(self, budget_ms: int) -> tuple[tuple[WriteReport, ...] | None, str]:
        """Settle every write that the child opened, within `budget_ms`. Call this only when no process of the child
        runs.

        Return the verdicts and a problem: why there are none (None, reason), or why there may be more writes.
        """
        try:
            writes = within(budget_ms, lambda: self.supervision.settle(budget_ms=max(0, budget_ms)))
            return writes, self.supervision.doubt() or ""
        except OverdueError as error:
            return None, f"the store gave {error}"
        except (SafeWriterError, OSError) as error:
            return None, f"{type(error).__name__}: {error}"
