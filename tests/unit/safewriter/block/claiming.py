"""Claims with parts of the claimer changed, and owners that renew their lease meanwhile."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.block.claim import Claim
    from tests.unit.safewriter.failing import Network
    from tests.unit.safewriter.job import Job
    from tests.unit.safewriter.world import World


def claims(job: Job, **changes: Any) -> Claim:
    """Claim with parts of the claimer changed; the marker exists already."""
    return dataclasses.replace(job.claimer, **changes).claim(job.state())


def beating(world: World, owners: list[Job]) -> Callable[[float], None]:
    """Return a nap during which the first of the owners renews its lease."""

    def sleep(seconds: float) -> None:
        world.sleep(seconds)
        world.checkpoints.renew_lease(world.key, owners[0].attempt.nonce)

    return sleep


def writes(network: Network) -> list[tuple[str, str]]:
    return [(sent.verb, sent.key.split("/")[0]) for sent in network.sent if sent.mutates]
