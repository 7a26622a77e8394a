"""The protocol's requests, picked out of all requests of a guarded write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.lab.pictures.facts import TracedRequest, TracedWrite

__all__ = ["Steps", "steps_of"]


@dataclass(frozen=True, slots=True)
class Steps:
    """In their order; `data` may be several."""

    marker: TracedRequest
    claim: TracedRequest
    data: tuple[TracedRequest, ...]
    commit: TracedRequest
    read_back: TracedRequest
    verdict: TracedRequest
    removal: TracedRequest

    def in_order(self) -> tuple[TracedRequest, ...]:
        """Return all of them, as the protocol orders them."""
        return self.marker, self.claim, *self.data, self.commit, self.read_back, self.verdict, self.removal


def steps_of(write: TracedWrite) -> Steps:
    """Pick them. Raises ValueError if one is missing, or there twice."""

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
