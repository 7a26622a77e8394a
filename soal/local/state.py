"""The state file of the local S3, by which commands find it, and that of any other process in the background.

The kernel reuses process ids, so the file also holds the start time. It is stale once its process has ended.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Self

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

if TYPE_CHECKING:
    from pathlib import Path

    from soal.home import Home

_SAME_START_S: Final = 0.05


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, at once as a whole: state and variables hold keys."""
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    fresh.replace(path)


class Background(BaseModel):
    """A process in the background, as its state file describes it. `started` is in seconds since the epoch."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pid: int
    started: float
    endpoint: str

    @classmethod
    def running(cls, path: Path) -> Self | None:
        """Return the process that the state file describes if it still runs, or None."""
        try:
            state = cls.model_validate_json(path.read_bytes())
        except (FileNotFoundError, ValidationError):
            return None
        return state if state.process() is not None else None

    def write(self, path: Path) -> None:
        """Write the state file."""
        write_private(path, self.model_dump_json(indent=2) + "\n")

    def process(self) -> psutil.Process | None:
        """Return the process if it still runs; None if it has ended or its id was reused."""
        try:
            process = psutil.Process(self.pid)
            is_same = abs(process.create_time() - self.started) < _SAME_START_S
            return process if is_same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


class LocalS3(Background):
    """A running local S3. `catalog` is the URI of its Iceberg REST catalog, None if it has none."""

    buckets: tuple[str, ...]
    catalog: str | None = None


def running(home: Home) -> LocalS3 | None:
    """Return the running local S3, or None."""
    return LocalS3.running(home.state)
