"""Processes to be killed, warm before they are needed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from safewriter.deadline import epoch_ms
from tests.support.observed import CHECKPOINTS
from tests.support.processes import Child

if TYPE_CHECKING:
    from soal.testing.s3.embedded import EmbeddedS3

__all__ = ["DEADLINE_MS", "Victims"]

DEADLINE_MS = 900_000


class Victims:
    """A pool of one: while a test judges one victim, the next one warms up."""

    def __init__(self, s3: EmbeddedS3, module: str, *arguments: str) -> None:
        self._command = (module, *arguments)
        # A build's tasks import packages of this Python's environment.
        own = {"SW_CHECKPOINT_BUCKET": CHECKPOINTS, "PYSPARK_PYTHON": sys.executable}
        self._environment = {**s3.environment(), **own}
        self._next: Child | None = None

    def take(self, *, ahead: bool = True) -> Child:
        """Return a victim that waits for its order; `ahead`: start the next one already."""
        child = self._next or self._start()
        child.expect("ready")
        self._next = self._start() if ahead else None
        return child

    def close(self) -> None:
        if self._next is not None:
            self._next.kill()

    def _start(self) -> Child:
        # A deadline of its own: the whole matrix takes longer than a deadline is away.
        deadline = {"SOAL_DEADLINE_EPOCH_MS": str(epoch_ms() + DEADLINE_MS)}
        return Child(*self._command, environment={**self._environment, **deadline})
