"""The protocol's requests, selected from all requests of a guarded write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.lab.pictures.facts import TracedRequest, TracedWrite

__all__ = ["Steps", "steps_of"]


@dataclass(frozen=True, slots=True)
class Steps:
    """The requests in order; there may be several `data`."""

    marker: TracedRequest
    claim: TracedRequest
    data: tuple[TracedRequest, ...]
    commit: TracedRequest
    read_back: TracedRequest
    verdict: TracedRequest
    removal: TracedRequest

    def in_order(self) -> tuple[TracedRequest, ...]:
        """Return all of them, in the protocol's order."""
        return self.marker, self.claim, *self.data, self.commit, self.read_back, self.verdict, self.removal


def steps_of(write: TracedWrite) -> Steps:
    """Select them. Raises ValueError if one is missing or occurs twice."""

    def all_of(operation: str, key_class: str) -> tuple[TracedRequest, ...]:
        return tuple(one for one in write.requests if (one.operation, one.key_class) == (operation, key_class))

    (marker,) = all_of("PutObject", "marker")
    claim, verdict = all_of("PutObject", "checkpoint")
    data = all_of("PutObject", "data")
    (commit,) = all_of("PutObject", "delta_log/commit")
    (read_back,) = (one for one in all_of("GetObject", "delta_log/commit") if one.key == commit.key)
    (removal,) = all_of("DeleteObject", "marker")
    if not data:
        raise ValueError("the write has sent no data file")
    return Steps(marker, claim, data, commit, read_back, verdict, removal)
