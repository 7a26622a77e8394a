"""The attempts that have announced one write: their markers, and whether one of them may still be writing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from safewriter.errors import UnknownOutcomeError, UnreadableCheckpointError
from safewriter.record.checkpoints import UNCLAIMED
from safewriter.record.document import CommitPoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.deadline import Clock
    from safewriter.record.checkpoints import Checkpoints, ListedMarker
    from safewriter.record.marker import Marker

__all__ = ["Announcements", "announcements"]


@dataclass(frozen=True, slots=True)
class Announcements:
    """What the markers of a write say together; `markers` are all that are there, the oldest first.

    `youngest`: the marker that was put last; if its attempt has claimed the write, it has the highest epoch. None: no
    marker could be read. `since_ms`: when the first attempt was announced (epoch ms). `needs_success`: an attempt's
    write counts only with its `success()`. `problem`: the error of a marker that could not be read. `living`: the nonce
    of an attempt whose time is not over, or whose lease has not expired; None if all are dead. `now`: the store's time
    when the last readable marker was read; the settler's if there is none.
    """

    markers: tuple[ListedMarker, ...]
    youngest: Marker | None
    since_ms: int
    needs_success: bool
    problem: UnreadableCheckpointError | None
    living: str | None
    now: datetime


def announcements(
    checkpoints: Checkpoints, write_key: str, clock: Clock, may_go_on: Callable[[], bool] = lambda: True
) -> Announcements:
    """List and read the markers of a write as they are now, one after the other. An attempt whose marker cannot be read
    counts as one without a deadline.

    Raises `UnknownOutcomeError` if `may_go_on` returns False before all are read, `UnreadableCheckpointError` if there
    are more than attempts can have put.
    """
    since_ms = clock()
    now = datetime.fromtimestamp(since_ms / 1000, UTC)
    markers, youngest, needs_success, problem, living = [], None, False, None, None
    for marker in checkpoints.markers_of(write_key):
        if not may_go_on():
            raise UnknownOutcomeError(f"the markers of {write_key} could not be read in time; it stays open")
        try:
            announced = checkpoints.announced(marker)
        except UnreadableCheckpointError as error:
            problem, is_over = error, now - marker.since > UNCLAIMED
        else:
            if announced is None:  # its attempt has ended since it was listed
                continue
            youngest, is_over, now = announced.marker, announced.is_over, announced.now
            since_ms = min(since_ms, announced.since_ms)
            needs_success |= youngest.commit_point is CommitPoint.SUCCESS
        markers.append(marker)
        if not is_over or checkpoints.has_sign_of_life(marker):
            living = marker.nonce
    return Announcements(tuple(markers), youngest, since_ms, needs_success, problem, living, now)
