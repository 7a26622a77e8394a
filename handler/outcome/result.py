"""The result of an invocation: one document on every path, returned or raised, and kept on S3.

Its schema is published as `result.schema.json` beside this file; `python -m handler.outcome.result` prints it.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from handler.json_document import JsonDocument, schema_text
from handler.outcome.state import State
from safewriter.errors import EXIT_DEADLINE, EXIT_FAILED, EXIT_OK, EXIT_TRY_AGAIN, EXIT_USAGE

__all__ = [
    "AttemptResult",
    "ErrorResult",
    "Memory",
    "Result",
    "Timings",
    "Versions",
    "WriteResult",
    "exit_status",
]

_FINE: Final = (State.SUCCESS, State.SKIPPED)


class WriteResult(JsonDocument):
    """One guarded write. `status` is committed, rolled_back, unknown, or in_progress (another attempt's)."""

    table: str
    """The table, by path or name."""
    format: str
    """`delta`, `iceberg` or `snapshot`."""
    step: str | None
    """The block's step, if it has one."""
    status: str
    """The verdict: `committed`, `rolled_back` or `unknown`; `in_progress` if another attempt owns the write."""
    version: int | None
    """The Delta version, the Iceberg snapshot, or the number of the publication, with the batch."""
    rows: int | None
    """Rows that the write added."""
    bytes: int | None
    """Bytes that the write added."""
    reason: str | None
    """Why the write has this status."""
    undo_refused: str | None
    """Why a commit stays that SafeWriter should have undone."""
    incomplete: str | None = None
    """Why a committed write lacks rows of its block, or why rows of a block stay beside it: a retry of it fails."""
    checkpoint: str
    """The URI of the checkpoint document."""
    run_id: str | None = Field(default=None, description="the attempt that the verdict is about")


class Timings(JsonDocument):
    """Milliseconds; null for what was not reached. `job_ms` begins with the session, or the script."""

    script_download_ms: int | None = None
    """Download of script and Python files."""
    jvm_start_ms: int | None = None
    """Start of the JVM."""
    session_ms: int | None = None
    """Start of the Spark session."""
    job_ms: int | None = None
    """The job itself."""
    settle_ms: int | None = None
    """Settling of the writes that the job left open."""
    total_ms: int
    """The whole invocation."""
    remaining_ms: int
    """The time left until the function's timeout."""


class Memory(JsonDocument):
    """MiB; the peak is the sum of the resident memory of all processes, sampled."""

    limit_mb: int
    """The function's memory."""
    peak_mb: int | None
    """The highest use, if it could be sampled."""


class Versions(JsonDocument):
    """What ran; null for what is not installed."""

    soal: str | None
    """This product."""
    spark: str | None
    """PySpark."""
    delta: str | None
    """Delta Lake."""
    iceberg: str | None
    """Apache Iceberg."""


class ErrorResult(JsonDocument):
    """Why the state is not SUCCESS. `field` names what to change in the event or the settings."""

    type: str
    """The kind of the error, such as `DeadlineExceeded`, or the exception's class."""
    message: str
    """The error in a sentence."""
    field: str | None
    """The field of the event, or the setting, to change."""
    retryable: bool
    """The same event may succeed later without a change."""
    usage: bool
    """The caller must change event, settings or script first."""


class AttemptResult(JsonDocument):
    """One attempt of a durable execution."""

    number: int
    """From 1, in this execution."""
    run_id: str | None
    """The attempt's own id; null if it was killed before it could answer."""
    state: State
    """How it ended."""
    error: str | None
    """The kind of the error."""
    committed: int
    """The writes that this attempt has committed; one that changed nothing does not count."""
    total_ms: int
    """The whole attempt, in milliseconds; 0 if unknown."""
    result_uri: str | None
    """The URI of the attempt's own document."""


class Result(JsonDocument):
    """The answer of an invocation."""

    schema_version: Literal[1] = 1
    """The version of this document."""
    run_id: str | None = Field(description="this attempt; null if none began")
    client_token: str | None
    """The run key."""
    attempt: int | None
    """The number of this attempt of the run, from 1."""
    previous_run_id: str | None
    """The attempt before this one."""
    name: str | None
    """The event's `name`."""
    entry_point: str | None = Field(default=None, description="the URI of the script; null if the event names none")
    state: State
    """How the attempt ended."""
    state_details: str
    """The state in a sentence: what happened, and what to do next."""
    exit_code: int | None
    """The job's exit code."""
    signal: int | None
    """The signal that ended the job."""
    error: ErrorResult | None
    """Why the state is not SUCCESS."""
    writes: tuple[WriteResult, ...]
    """The guarded writes, each with its verdict."""
    timings: Timings
    """The times of the invocation's parts."""
    cold_start: bool
    """This was the first invocation of its sandbox."""
    warm_start: bool = Field(
        default=False,
        description="a JVM was waiting for the job: an earlier one's, or that of provisioned concurrency",
    )
    memory: Memory
    """The function's memory, and how much of it was used."""
    versions: Versions
    """The versions that ran."""
    warnings: tuple[str, ...]
    """Settings that were ignored, and other remarks."""
    log_tail: tuple[str, ...]
    """The job's last lines."""
    result_uri: str | None
    """The URI of this document on S3."""
    resume_token: str | None = Field(default=None, description="the clientToken that continues an INCOMPLETE run")
    progressed: bool = Field(
        default=False,
        description="this attempt has committed a write; one that changed nothing does not count",
    )
    continued_by: str | None = Field(default=None, description="request id of the invocation that continues the run")
    attempts: tuple[AttemptResult, ...] = Field(
        default=(), description="of a durable execution: all of them; the other fields are those of the last one"
    )


def exit_status(result: Result) -> int:
    """Return the exit code of a command that ran the job: 0, 1, 2 (usage), 75 (try again) or 124 (deadline)."""
    if result.state in _FINE:
        return EXIT_OK
    if result.state in (State.TIMED_OUT, State.INCOMPLETE):
        return EXIT_DEADLINE
    if result.state is not State.FAILED or result.error is None:
        return EXIT_FAILED
    if result.error.usage:
        return EXIT_USAGE
    return EXIT_TRY_AGAIN if result.error.retryable else EXIT_FAILED


if __name__ == "__main__":
    print(schema_text(Result), end="")  # noqa: T201 - the module's program
