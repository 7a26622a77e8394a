"""The surroundings of a write, and the attempts that were started in them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.job import Job
from tests.unit.safewriter.surroundings import Surroundings


class World(Surroundings):
    """The surroundings and all attempts."""

    @cached_property
    def jobs(self) -> list[Job]:
        """The attempts, in the order of their start."""
        return []

    def job(self, network: Network | None = None, **more: Any) -> Job:
        """Start an attempt."""
        job = Job(self, f"{len(self.jobs) + 1:016x}", network or Network(), **more)
        self.jobs.append(job)
        return job
