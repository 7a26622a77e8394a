"""Everything that SafeWriter raises, as one tree.

    SafeWriterError
    ├── UsageError                 the call, the settings or the session must be changed       exit 2
    │   ├── SettingError           an environment variable holds a bad value
    │   ├── UnguardedSessionError  the Spark session lacks the conditional log store
    │   ├── UnsupportedError       table, feature or operation that is not guarded (yet)
    │   ├── StepError              two blocks on one table without a `step`
    │   ├── BlockOpenError         another block is open on this Spark session
    │   └── FingerprintError       the same run key with another job
    ├── TryAgainError              nothing was written; the same call may work later            exit 75
    │   ├── AnotherAttemptError    a live attempt of this run owns the write
    │   ├── ConflictError          commits of others since the block began conflict with its write
    │   ├── TooLateError           too close to the deadline to begin
    │   └── TurnBlockedError       another job holds the lock, or the order does not let this one run
    │       └── TurnSkippedError   the job is to skip such a turn                               exit 0
    ├── DeadlineError              the deadline came while the block was open                   exit 124
    ├── TurnLostError              another job may have the turn by now                         exit 75
    ├── StoreError                 S3 or a catalog refused a request, or did not answer         exit 75
    ├── NotCommittedError          the table does not hold this write, or not it alone          exit 1
    ├── SupersededError            a later attempt, or a settler, has taken the write over      exit 1
    ├── UnreadableCheckpointError  a document or marker is damaged                              exit 1
    │   └── UnknownVersionError    it is of a version that this code does not know              exit 1
    └── UnknownOutcomeError        whether the write landed could not be established            exit 1

`exit_code` is the exit code for a process that does not catch the error. `retryable` tells whether the same call may
succeed later without a change. The message says what happened, where, and what to do.
"""

from __future__ import annotations

import copyreg
from typing import Any, ClassVar, Final, Self

from safewriter.bounds import shortened

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_TRY_AGAIN: Final = 75
EXIT_DEADLINE: Final = 124


class SafeWriterError(Exception):
    """Base of all errors of this package."""

    exit_code: ClassVar[int] = EXIT_FAILED
    retryable: ClassVar[bool] = False

    def __init__(self, *message: object) -> None:
        # A message may quote text from outside, and goes into documents, logs and terminals.
        super().__init__(*(shortened(part) if isinstance(part, str) else part for part in message))

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception pickles as a call with `args`, and several of these take other arguments.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class UsageError(SafeWriterError):
    """The caller must change something first."""

    exit_code = EXIT_USAGE


class SettingError(UsageError):
    """An environment variable or argument holds a value that cannot be used."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name, self.problem = name, problem


class UnguardedSessionError(UsageError):
    """The Spark session does not commit through the conditional log store, so no write in it can be guarded."""


class UnsupportedError(UsageError):
    """The table, one of its features, or the operation is not guarded by this version."""


class StepError(UsageError):
    """A second block on the same table in one run, or in one batch of a stream, has no name of its own."""

    @classmethod
    def of(cls, table: object, step: str | None, *, in_stream: bool) -> Self:
        """Return the error that names the write of the two blocks."""
        return cls(
            f"this {'stream' if in_stream else 'run'} has a block on {table} (step {step!r}) already. Give each block"
            " on one table a step of its own that is the same on a retry, such as step='2026-11'"
        )


class BlockOpenError(UsageError):
    """The Spark session already has an open block."""

    def __init__(self) -> None:
        super().__init__(
            "another SafeWriter block is open on this Spark session; end it first (a frame of foreachBatch belongs to"
            " one session), or give the block of another thread a session of its own, which also makes its rows:"
            " session = spark.newSession()"
        )


class FingerprintError(UsageError):
    """The run key was used before for another script, other arguments, another table or step."""


class TryAgainError(SafeWriterError):
    """Nothing was written; the same run may be tried again later."""

    exit_code = EXIT_TRY_AGAIN
    retryable = True


class AnotherAttemptError(TryAgainError):
    """Another attempt of the same run is alive and owns this write."""


class ConflictError(TryAgainError):
    """Commits of others since the block began conflict with its write; a retry sees what they wrote."""


class TooLateError(TryAgainError):
    """The deadline is too near to begin a write."""


class TurnBlockedError(TryAgainError):
    """Another job holds the lock, or the order of the jobs does not let this one run yet."""


class TurnSkippedError(TurnBlockedError):
    """The order does not let this job run yet, and its configuration says to skip the turn then."""

    exit_code = EXIT_OK


class TurnLostError(SafeWriterError):
    """The lock was lost while the job ran, and another job may have it. The message says if the last write is
    committed; otherwise the next holder settles it.
    """

    exit_code = EXIT_TRY_AGAIN
    retryable = True


class StoreError(SafeWriterError):
    """A request failed, and it is unknown whether it was applied (or, for a read, whether the object exists). The same
    run may be tried again: it first settles what this one has left open.

    `denied`: the store refuses the caller (no permission, no such bucket); give the role the permission first. A denied
    read proves nothing: to a caller who may not list the bucket, S3 also denies the read of a missing object.
    """

    exit_code = EXIT_TRY_AGAIN
    retryable = True

    def __init__(self, message: str, *, denied: bool = False) -> None:
        super().__init__(message)
        self.denied = denied


class DeadlineError(SafeWriterError):
    """The deadline came while the block was open; the write was settled before this was raised."""

    exit_code = EXIT_DEADLINE
    retryable = True


class NotCommittedError(SafeWriterError):
    """The table does not hold this block's write, or not all of it, or not it alone."""


class SupersededError(SafeWriterError):
    """Another process settled this write, or a later attempt claimed it, while this one was not running."""


class UnreadableCheckpointError(SafeWriterError):
    """The checkpoint is damaged, or of an unknown schema version; it is left as it is.

    `etag`: the object's, if it was read from a bucket.
    """

    def __init__(self, message: str, etag: str = "") -> None:
        super().__init__(message)
        self.etag = etag


class UnknownVersionError(UnreadableCheckpointError):
    """The checkpoint is of a schema version that this code does not know; code of that version can read it."""


class UnknownOutcomeError(SafeWriterError):
    """It is unknown whether the write landed, or whether it counts: look at the table."""
