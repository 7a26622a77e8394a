"""A random history of one table of any format: steps that a seed draws, played one after the other.

A writer dies like a killed process: it sends nothing more, its lease is not renewed, and its files stay.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tests.property.writers import new_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.property.writers import Writer
    from tests.support.network_faults import Late

__all__ = ["PlannedError", "Play"]


class PlannedError(Exception):
    """The user's own error."""


class Play(ABC):
    """Play `steps` random steps. The format implements them, and judges the table in `finish`."""

    def __init__(self, seed: int, spark: SparkSession, s3: EmbeddedS3, processes: Sequence[Writer]) -> None:
        self.random = random.Random(seed)  # noqa: S311 - a history is to be played again, not to be kept secret
        self.spark, self.s3 = new_session(spark), s3
        self.said: list[str] = [f"seed {seed}"]
        self.late: list[Late] = []
        self.number = 0
        self._processes = processes

    @abstractmethod
    def create(self) -> None:
        """Make the table."""

    @abstractmethod
    def step(self) -> None:
        """Carry out one step."""

    @abstractmethod
    def finish(self) -> None:
        """End all open blocks, deliver all late requests, and judge."""

    def say(self, what: str) -> None:
        self.said.append(what)

    def play(self, steps: int) -> None:
        """Play; any failure names the steps that led to it."""
        try:
            self.create()
            for _ in range(steps):
                self.step()
            self.finish()
        except BaseException as error:
            error.add_note("\n".join(self.said))
            raise
        finally:
            self.s3.wire.clear_rules()
            for one in self._processes:
                if one.block is not None:
                    one.vanish()
                one.thread.shutdown()
            self.s3.wire.clock_ahead_s = 0

    def deliver(self) -> None:
        """Deliver the network's held requests."""
        late = self.late.pop(self.random.randrange(len(self.late)))
        self.say(f"the network delivers: {[reply.status for reply in late.release()]}")
