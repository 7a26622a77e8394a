"""The names of runs, writes and attempts: some are the same on every retry, others are new on each."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from safewriter.bounds import short
from safewriter.entropy import unique_id
from safewriter.errors import StepError, UnsupportedError
from safewriter.objects.location import Location

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

__all__ = [
    "ATTEMPT",
    "EPOCH_MAX",
    "Attempt",
    "Run",
    "Write",
    "attempts_in",
    "canonical_table",
    "check_write_key",
    "is_file_of",
]

EPOCH_MAX: Final = 10**9 - 1
"""No write has as many attempts: a larger epoch in a table is not ours, and is ignored."""
_EARLIER: Final = 15
"""As much of a write key earlier versions had in an attempt's name. Only the whole key tells two writes apart."""
_SLASHES: Final = re.compile(r"/{2,}")
ATTEMPT: Final = re.compile(r"(sw-[0-9a-f]{12}(?:[0-9a-f]{20})?)-(\d+)-([0-9a-f]{16})")
"""The name of an attempt: its write's key, or the start of it (earlier versions), its epoch and nonce. No other program
names a file so.
"""


def canonical_table(table: str) -> Location:
    """Return the canonical location of a path table: the scheme (s3, s3a, s3n) and extra slashes do not count.

    Raises `UnsupportedError` for anything that is not an S3 path.
    """
    try:
        location = Location.parse(table)
    except ValueError as error:
        raise UnsupportedError(f"{error}. SafeWriter guards Delta tables by their path, s3a://bucket/table") from None
    key = _SLASHES.sub("/", location.key).strip("/")
    if {".", ".."}.intersection(key.split("/")):
        # Hadoop resolves them and S3 does not: guard and Spark would look at two tables.
        raise UnsupportedError(f"{table!r} holds '.' or '..'; write the path without them")
    if not key:
        raise UnsupportedError(f"{table!r} is a whole bucket; give the table a path of its own in it")
    return Location(location.bucket, key)


class _Process:
    """Off Lambda and without a given run key, each process is a run of its own, also a forked one."""

    def __init__(self) -> None:
        self.draw()
        os.register_at_fork(after_in_child=self.draw)

    def draw(self) -> None:
        """Make this process a new run."""
        self.run_id = unique_id()


_PROCESS: Final = _Process()


@dataclass(frozen=True, slots=True)
class Run:
    """One logical execution of a job. `key` is the same for all its attempts, `id` is this attempt's own.

    `stream_run_id`: Spark's run id of a stream, a new one at each start. Within one start a stream delivers each batch
    once, so two writes of one name come from two blocks, as in one run of a job.
    """

    key: str
    id: str
    request_id: str | None = None
    fingerprint: str = ""
    stream_run_id: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Run:
        """Return the run that the handler passed; without one, this process is a run."""
        run_id = environment.get("SOAL_RUN_ID") or _PROCESS.run_id
        return cls(
            key=environment.get("SOAL_RUN_KEY") or run_id,
            id=run_id,
            request_id=environment.get("SOAL_REQUEST_ID"),
            fingerprint=environment.get("SOAL_JOB_FINGERPRINT", ""),
        )

    @property
    def delivery(self) -> str:
        """The delivery's id: the same in all processes of one attempt, new on each retry and each start of a stream."""
        return self.id if self.stream_run_id is None else f"{self.id}/{self.stream_run_id}"

    def of_stream(self, query_id: str, stream_run_id: str) -> Run:
        """Return the stream as a run. It outlives every job that drives it, and the job's script may change."""
        return replace(self, key=f"stream {query_id}", fingerprint="stream", stream_run_id=stream_run_id)


@dataclass(frozen=True, slots=True)
class Write:
    """One block of a run on one table."""

    run: Run
    table: Hashable
    format: str
    step: str | None
    covers: str | None = None
    """The text of what the write covers, if the step's name does not say all of it (`safewriter.backfill`)."""

    @property
    def key(self) -> str:
        """The write key: names the checkpoint document, and is the application id of the transaction action."""
        return _write_key(self.run.key, str(self.table), self.step)

    @property
    def fingerprint(self) -> str:
        """The hash of all that must not change between two attempts under one run key."""
        return _digest(self.run.fingerprint, self.format, *(() if self.covers is None else (self.covers,)))

    @property
    def step_error(self) -> StepError:
        """The error for a second block of this name."""
        return StepError.of(self.table, self.step, in_stream=self.run.stream_run_id is not None)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a write. The nonce is drawn before the epoch is known; files carry both."""

    nonce: str

    @classmethod
    def draw(cls) -> Attempt:
        """Draw a new nonce of 16 hexadecimal digits."""
        return cls(unique_id()[:16])

    def file_prefix(self, write_key: str, epoch: int) -> str:
        """Return the prefix of the name of every data file of this attempt; without the last dash, the attempt's name.

        It has the whole write key: on some formats a verdict rests on the name alone.
        """
        return f"{write_key}-{epoch}-{self.nonce}-"

    def check_prefix(self, prefix: str, write_key: str, epoch: int) -> None:
        """Raise `ValueError` unless a prefix that was read is this attempt's own. A settler deletes by it."""
        own = (self.file_prefix(write_key, epoch), self.file_prefix(write_key[:_EARLIER], epoch))
        if prefix not in own or not ATTEMPT.fullmatch(prefix.removesuffix("-")) or not 1 <= epoch <= EPOCH_MAX:
            raise ValueError(f"{short(prefix)} is not the prefix of epoch {epoch} of {short(write_key)}")


def check_write_key(write_key: str, run_key: str, table: str, step: str | None) -> None:
    """Raise `ValueError` unless a write key that was read is made of the names beside it.

    The write's files bear the key, and a settler looks for them in the table: in another one nothing would name them.
    """
    if write_key != _write_key(run_key, table, step):
        raise ValueError(f"{short(write_key)} is not the key of a write of run {short(run_key)} to {short(table)}")


def is_file_of(name: str, write_key: str) -> bool:
    """Return whether a data file has the name of an attempt at a write."""
    return name.startswith((f"{write_key}-", f"{write_key[:_EARLIER]}-"))


def attempts_in(names: Iterable[str], write_key: str) -> dict[str, int]:
    """Return those of the names that belong to attempts at a write, with their epochs, up to `EPOCH_MAX`.

    Earlier versions named an attempt by the first 12 digits of the write key only.
    """
    start, rest = re.escape(write_key[:_EARLIER]), re.escape(write_key[_EARLIER:])
    pattern = re.compile(rf"{start}(?:{rest})?-([0-9]{{1,9}})-[0-9a-f]{{16}}")
    return {match[0]: int(match[1]) for name in names if (match := pattern.fullmatch(name))}


def _write_key(run_key: str, table: str, step: str | None) -> str:
    return "sw-" + _digest(run_key, table, step)[:32]


def _digest(*parts: str | None) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
