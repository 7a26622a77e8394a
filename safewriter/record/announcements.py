"""The attempts that have announced one write: what they say of it, and whether one of them may still be at it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from safewriter.errors import UnreadableCheckpointError
from safewriter.record.checkpoints import UNCLAIMED

if TYPE_CHECKING:
    from safewriter.deadline import Clock
    from safewriter.record.checkpoints import Announced, Checkpoints, Marked
    from safewriter.record.marker import Marker

__all__ = ["Announcements", "announcements"]


@dataclass(frozen=True, slots=True)
class Announcements:
    """All markers of a write, the oldest first; `readable` are those that tell something.

    `problem`: of one that cannot be read. `living`: the nonce of an attempt whose time is not over, or whose lease has
    not expired; None if all are dead.
    """

    marks: tuple[Marked, ...]
    readable: tuple[Announced, ...]
    problem: UnreadableCheckpointError | None
    living: str | None

    @property
    def youngest(self) -> Marker:
        """The last attempt that has announced itself: if any has raised the epoch, it did so last."""
        return self.readable[-1].marker


def announcements(checkpoints: Checkpoints, write_key: str, clock: Clock) -> Announcements:
    """List and read the markers of a write as they are now. An attempt whose marker cannot be read is over as one
    without a deadline is.
    """
    now = datetime.fromtimestamp(clock() / 1000, UTC)
    marks, readable, problem, living = [], [], None, None
    for mark in checkpoints.markers_of(write_key):
        try:
            found = checkpoints.announced(mark)
        except UnreadableCheckpointError as error:
            problem, is_over = error, now - mark.since > UNCLAIMED
        else:
            if found is None:  # its attempt has ended since it was listed
                continue
            readable.append(found)
            is_over = found.is_over
        marks.append(mark)
        if not is_over or checkpoints.has_sign_of_life(mark):
            living = mark.nonce
    return Announcements(tuple(marks), tuple(readable), problem, living)
