"""The environment in which jobs are killed: an S3 of its own, which settlers and readers find as in any process."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from unittest.mock import patch

from safewriter.deadline import epoch_ms
from safewriter.identity import Run, Write
from safewriter.objects.s3 import S3ObjectStore, table_store
from safewriter.record.checkpoints import Checkpoints
from safewriter.settle.recovery import Recovery
from safewriter.tables.registry import format_of
from scripts.emulator.s3_backends import BACKENDS, opened_backend
from soal.local.names import REGION
from soal.testing.s3.embedded import EmbeddedS3
from tests.lab.experiment.tables import LAKE, Place

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.record.document import Checkpoint
    from tests.lab.experiment.plan import Format

__all__ = ["CHECKPOINTS", "DEADLINE_MS", "Ground", "until"]

CHECKPOINTS: Final = "experiment-checkpoints"
DEADLINE_MS: Final = 900_000
"""A job's timeout, like a function's."""
_POLL_S: Final = 0.005


class Ground:
    """A context manager, one at a time per process: it sets the process's environment. `backend`: the S3's name."""

    s3: EmbeddedS3

    def __init__(self, backend: str = BACKENDS[0]) -> None:
        self._backend = backend
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-experiment-")))
            backend = stack.enter_context(opened_backend(self._backend))
            self.s3 = stack.enter_context(EmbeddedS3(buckets=(LAKE, CHECKPOINTS), backend=backend))
            stack.enter_context(patch.dict(os.environ, self._aws, SW_CHECKPOINT_BUCKET=CHECKPOINTS))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def _aws(self) -> dict[str, str]:
        return {**self.s3.environment(), "AWS_REGION": REGION}

    def place(self, prefix: str, folder: str) -> Place:
        """Return a place for a table."""
        return Place(self.s3.observer(), self._aws, prefix, Path(folder))

    @staticmethod
    def variables(run_key: str, deadline_ms: int = DEADLINE_MS) -> dict[str, str]:
        """Return the variables that the handler would set for a job's run, which has `deadline_ms` from now."""
        return {"SOAL_RUN_KEY": run_key, "SOAL_DEADLINE_EPOCH_MS": str(epoch_ms() + deadline_ms)}

    @property
    def checkpoints(self) -> Checkpoints:
        """The guard's documents."""
        return Checkpoints(S3ObjectStore(self.s3.observer(), CHECKPOINTS))

    @property
    def recovery(self) -> Recovery:
        """A settler without Spark."""
        return Recovery(self.checkpoints, table_store, clock=epoch_ms)

    def document(self, run_key: str, table: str, table_format: Format) -> Checkpoint | None:
        """Return the document of a run's only write, or None."""
        write = Write(Run(run_key, ""), format_of(table_format).parse(table), table_format, None)
        stored = self.checkpoints.read(write.key)
        return None if stored is None else stored.document

    def wait_until_quiet(self, timeout_s: float) -> None:
        """Wait for the pending requests of dead processes. Raises `RuntimeError` after `timeout_s`."""
        until(lambda: self.s3.wire.is_quiet, timeout_s, "every request has ended")


def until(holds: Callable[[], bool], timeout_s: float, what: str) -> None:
    """Wait until `holds` returns true. Raises `RuntimeError`, which names `what`, after `timeout_s`."""
    end = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError(f"it is not so within {timeout_s:.0f} s that {what}")
        time.sleep(_POLL_S)
