"""The attempts that have announced one write: their markers, and whether one of them may still be writing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from safewriter.errors import UnreadableCheckpointError
from safewriter.record.checkpoints import UNCLAIMED

if TYPE_CHECKING:
    from safewriter.deadline import Clock
    from safewriter.record.checkpoints import Announced, Checkpoints, ListedMarker
    from safewriter.record.marker import Marker

__all__ = ["Announcements", "announcements"]


@dataclass(frozen=True, slots=True)
class Announcements:
    """All markers of a write, the oldest first; `readable` are those that could be read.

    `problem`: the error of a marker that could not be read. `living`: the nonce of an attempt whose time is not over,
    or whose lease has not expired; None if all are dead.
    """

    markers: tuple[ListedMarker, ...]
    readable: tuple[Announced, ...]
    problem: UnreadableCheckpointError | None
    living: str | None

    @property
    def youngest(self) -> Marker:
        """The marker that was put last: if several attempts raised the epoch, this one did so last."""
        return self.readable[-1].marker


def announcements(checkpoints: Checkpoints, write_key: str, clock: Clock) -> Announcements:
    """List and read the markers of a write as they are now. An attempt whose marker cannot be read counts
    as one without a deadline.
    """
    now = datetime.fromtimestamp(clock() / 1000, UTC)
    markers, readable, problem, living = [], [], None, None
    for marker in checkpoints.markers_of(write_key):
        try:
            announced = checkpoints.announced(marker)
        except UnreadableCheckpointError as error:
            problem, is_over = error, now - marker.since > UNCLAIMED
        else:
            if announced is None:  # its attempt has ended since it was listed
                continue
            readable.append(announced)
            is_over = announced.is_over
        markers.append(marker)
        if not is_over or checkpoints.has_sign_of_life(marker):
            living = marker.nonce
    return Announcements(tuple(markers), tuple(readable), problem, living)
