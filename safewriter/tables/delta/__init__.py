"""Delta Lake: its log without a JVM, and its session with one."""

from safewriter.tables.delta.session import DeltaSession
from safewriter.tables.delta.table import DeltaTable

__all__ = ["DeltaSession", "DeltaTable"]
