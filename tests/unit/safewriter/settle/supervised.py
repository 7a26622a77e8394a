"""A child of the supervisor: its journal, and its stores behind a network of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safewriter.objects import Location
from safewriter.record import journal
from safewriter.record.journal import Journal
from safewriter.settings import Settings
from safewriter.settle import supervisor
from safewriter.settle.supervisor import Supervision, WriteReport
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.surroundings import TABLE
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from safewriter.record.journal import Event
    from tests.unit.safewriter.job import Job

BUDGET_MS = 10_000


class Child:
    """A child as the supervisor sees it: a journal, and the two stores behind its own network."""

    def __init__(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, world: World, network: Network | None = None
    ) -> None:
        self.path = path
        self.journal = Journal(path)
        self.world = world
        self.network = network or Network()
        bucket, lake = self.network.store(world.bucket), self.network.store(world.lake)
        monkeypatch.setattr(supervisor, "open_store", lambda location: {"checkpoints": bucket}[location.bucket])
        monkeypatch.setattr(supervisor, "table_store", lambda uri: {TABLE: lake}[uri])

    def opened(self, job: Job, **more: Any) -> None:
        """Write the line that the guard writes before anything else."""
        self._tell("write_opened", job, **more)

    def not_entered(self, job: Job, kind: str, reason: str, **more: Any) -> None:
        """Write the line that the guard writes about a block that was not entered."""
        self._tell("not_entered", job, type=kind, reason=reason, **more)

    def _tell(self, event: Event, job: Job, **more: Any) -> None:
        fields = {
            "writeKey": self.world.key,
            "nonce": job.attempt.nonce,
            "table": TABLE,
            "format": "delta",
            "step": "a step",
            "commitPoint": self.world.commit_point.value,
            "checkpoint": self.world.checkpoints.uri(self.world.key),
        }
        journal.append(self.path, event, **(fields | more))

    def passed(self, job: Job) -> None:
        """Write the line that the gate writes before it sends a commit."""
        journal.append(self.path, "commit_passed", nonce=job.attempt.nonce)

    def closed(self, job: Job) -> None:
        journal.append(self.path, "write_closed", nonce=job.attempt.nonce)

    def supervision(self, *, audit_log: bool = True) -> Supervision:
        settings = Settings(Location("checkpoints"), audit_log=audit_log)
        return Supervision(self.journal, settings, clock=self.world.clock)

    def settle(self, budget_ms: int = BUDGET_MS) -> WriteReport:
        (report,) = self.supervision().settle(budget_ms=budget_ms)
        return report


class Children:
    """Starts children, whose journal lies at one path."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path, self._monkeypatch = path, monkeypatch

    def new(self, world: World | None = None, network: Network | None = None) -> Child:
        return Child(self._path, self._monkeypatch, world or World(), network)

    def claimed(self, world: World | None = None) -> tuple[Child, Job]:
        """Start one that has opened a block and claimed it."""
        found = self.new(world)
        job = found.world.job().begin()
        found.opened(job)
        return found, job
