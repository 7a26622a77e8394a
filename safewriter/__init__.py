"""SafeWriter: a table write that lands whole, once, or not at all, whatever kills the job.

`docs/concepts/protocol.md` is its specification.
"""

from safewriter.backfill import Part, days, parts
from safewriter.errors import (
    AnotherAttemptError,
    BlockOpenError,
    ConflictError,
    DeadlineError,
    FingerprintError,
    NotCommittedError,
    SafeWriterError,
    SettingError,
    StepError,
    StoreError,
    SupersededError,
    TooLateError,
    TryAgainError,
    TurnBlockedError,
    TurnLostError,
    TurnSkippedError,
    UnguardedSessionError,
    UnknownOutcomeError,
    UnknownVersionError,
    UnreadableCheckpointError,
    UnsupportedError,
    UsageError,
)
from safewriter.object_path import object_path
from safewriter.session import configure_spark
from safewriter.shortcut import save
from safewriter.writer import SafeWriter

__all__ = [
    "AnotherAttemptError",
    "BlockOpenError",
    "ConflictError",
    "DeadlineError",
    "FingerprintError",
    "NotCommittedError",
    "Part",
    "SafeWriter",
    "SafeWriterError",
    "SettingError",
    "StepError",
    "StoreError",
    "SupersededError",
    "TooLateError",
    "TryAgainError",
    "TurnBlockedError",
    "TurnLostError",
    "TurnSkippedError",
    "UnguardedSessionError",
    "UnknownOutcomeError",
    "UnknownVersionError",
    "UnreadableCheckpointError",
    "UnsupportedError",
    "UsageError",
    "configure_spark",
    "days",
    "object_path",
    "parts",
    "save",
]
