"""Ordered turns for several jobs on one table: a lock with tokens that fence, and an order over completed turns."""

from safewriter.coordination.borrowed import BorrowedTurn
from safewriter.coordination.configuration import Configuration, Edge, FirstRun, Mode, OnBlocked
from safewriter.coordination.coordinator import JobCoordinator
from safewriter.coordination.record import End
from safewriter.coordination.turn import Turn

__all__ = ["BorrowedTurn", "Configuration", "Edge", "End", "FirstRun", "JobCoordinator", "Mode", "OnBlocked", "Turn"]
