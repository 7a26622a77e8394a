"""A stream that the test controls, and a job with its turns at a lock in memory."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from safewriter.coordination import Configuration, End, JobCoordinator
from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.stream import Batches

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.coordination.record import Record

LOCK: Final = "T"


@dataclass
class FakeStream:
    """One start of a stream: its commit log, and whether its thread is alive."""

    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    recorded: set[int] = field(default_factory=set)
    stopped: bool = False
    ended: bool = False
    silent: bool = False

    def is_active(self) -> bool:
        return not self.stopped

    def has_ended(self) -> bool:
        return self.ended

    def has_recorded(self, batch_id: int) -> bool:
        if self.silent:
            raise ConnectionError
        return batch_id in self.recorded


class Job:
    """A coordinator and the stream that it serves."""

    def __init__(self, backend: MemoryBackend | None = None, **configuration: Any) -> None:
        wanted = Configuration(lock=LOCK, job="Ingestion", **{"poll_s": 0.01, **configuration})
        self.backend = MemoryBackend() if backend is None else backend
        self.stream = FakeStream()
        self.coordinator = JobCoordinator(wanted, self.backend)
        self.batches = Batches(self.coordinator, lambda _: self.stream)

    def batch(self, function: Callable[[Any, int], Any], batch_id: int = 0) -> None:
        self.batches.for_each(function)(None, batch_id)  # type: ignore[arg-type]  # the fake needs no frame

    def record(self) -> Record:
        stored = self.backend.read(LOCK)
        assert stored is not None
        return stored.record

    def ends(self) -> list[End]:
        return [turn.end for turn in self.record().history]
