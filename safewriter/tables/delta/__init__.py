"""Delta Lake: its log without a JVM, and its session with one."""

from safewriter.tables.delta.history import DeltaHistory
from safewriter.tables.delta.session import DeltaSession

__all__ = ["DeltaHistory", "DeltaSession"]
