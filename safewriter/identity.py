"""Which run, which write, which attempt: names that are the same on every retry, and names that never are."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from safewriter.errors import UnsupportedError
from safewriter.objects.location import Location

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safewriter.tables.iceberg.name import TableName

__all__ = ["Attempt", "Run", "Write", "canonical_table"]

_PROCESS_RUN_ID: Final = uuid.uuid4().hex
"""Off Lambda, without a key from outside, a process is a run of its own."""

_SLASHES: Final = re.compile(r"/{2,}")


def canonical_table(table: str) -> Location:
    """Return the one name of a path table: s3, s3a and s3n, doubled and trailing slashes are the same table.

    Raises `UnsupportedError` for anything that is not an S3 path.
    """
    try:
        found = Location.parse(table)
    except ValueError as error:
        raise UnsupportedError(f"{error}. SafeWriter guards Delta tables by their path, s3a://bucket/table") from None
    key = _SLASHES.sub("/", found.key).strip("/")
    if {".", ".."}.intersection(key.split("/")):
        # Hadoop resolves them and S3 does not: guard and Spark would look at two tables.
        raise UnsupportedError(f"{table!r} holds '.' or '..'; write the path without them")
    if not key:
        raise UnsupportedError(f"{table!r} is a whole bucket; give the table a path of its own in it")
    return Location(found.bucket, key)


@dataclass(frozen=True, slots=True)
class Run:
    """One logical execution of a job. `key` is the same for all its attempts, `id` is this attempt's own.

    `is_stream`: it is a stream, which may come back to a batch of its own whenever it is started again.
    """

    key: str
    id: str
    request_id: str | None = None
    fingerprint: str = ""
    is_stream: bool = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Run:
        """Take the run that the handler passed, or make this process one."""
        run_id = environment.get("SOAL_RUN_ID", _PROCESS_RUN_ID)
        return cls(
            key=environment.get("SOAL_RUN_KEY", run_id),
            id=run_id,
            request_id=environment.get("SOAL_REQUEST_ID"),
            fingerprint=environment.get("SOAL_JOB_FINGERPRINT", ""),
        )

    def of_stream(self, query_id: str) -> Run:
        """Return the stream as a run. It outlives every job that drives it, and the job's script may change."""
        return replace(self, key=f"stream {query_id}", fingerprint="stream", is_stream=True)


@dataclass(frozen=True, slots=True)
class Write:
    """One block of a run on one table."""

    run: Run
    table: Location | TableName
    format: str
    step: str | None

    @property
    def key(self) -> str:
        """The write key: names the checkpoint document, and is the application id of the transaction action."""
        return "sw-" + _digest(self.run.key, str(self.table), self.step)[:32]

    @property
    def fingerprint(self) -> str:
        """What must not change between two attempts under one run key."""
        return _digest(self.run.fingerprint, self.format)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a write. The nonce is drawn before the epoch is known; files carry both."""

    nonce: str

    @classmethod
    def draw(cls) -> Attempt:
        """Draw a new nonce of 16 hexadecimal digits."""
        return cls(uuid.uuid4().hex[:16])

    def file_prefix(self, write_key: str, epoch: int) -> str:
        """Return how the name of every data file of this attempt begins."""
        return f"{write_key[:15]}-{epoch}-{self.nonce}-"


def _digest(*parts: str | None) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
