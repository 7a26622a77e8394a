"""An attempt and a document to begin with."""

from __future__ import annotations

import dataclasses
from typing import Any

from safewriter.identity import Attempt, Run, Write
from safewriter.record.document import (
    AttemptRecord,
    Checkpoint,
    CommitPoint,
    Status,
)

KEY = Write(Run("run", "run-id"), "s3://lake/t", "delta", None).key
NONCE = "a" * 16


def attempt(epoch: int = 1, nonce: str = NONCE, **more: Any) -> AttemptRecord:
    fields: dict[str, Any] = {
        "epoch": epoch,
        "nonce": nonce,
        "run_id": "run-id",
        "request_id": None,
        "prefix": Attempt(nonce).file_prefix(KEY, epoch),
        "deadline_ms": 10,
        "started_ms": 1,
        "version_before": 4,
    }
    return AttemptRecord(**(fields | more))


def document(status: Status = Status.IN_PROGRESS, epoch: int = 1, **more: Any) -> Checkpoint:
    fields: dict[str, Any] = {
        "run_key": "run",
        "write_key": KEY,
        "fingerprint": "f",
        "table": "s3://lake/t",
        "format": "delta",
        "step": None,
        "commit_point": CommitPoint.WRITE,
        "status": status,
        "epoch": epoch,
        "owner": NONCE,
        "attempts": (attempt(epoch),),
    }
    return named(Checkpoint(**(fields | more)))


def named(found: Checkpoint, **names: Any) -> Checkpoint:
    """Return a document of a run, table or step of another name, with the key and the attempts of that write."""
    found = dataclasses.replace(found, **names)
    key = Write(Run(found.run_key, "run-id"), found.table, found.format, found.step).key
    attempts = (dataclasses.replace(one, prefix=one.prefix.replace(found.write_key, key, 1)) for one in found.attempts)
    return dataclasses.replace(found, write_key=key, attempts=tuple(attempts))
