"""The pace of a long write: how long its last parts took, in this attempt and in earlier ones."""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import TYPE_CHECKING, Final

from safewriter.settle.recovery import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safewriter.record.document import Checkpoint

__all__ = ["Pace"]

_LAST: Final = 5
_SPARE: Final = 1.2
"""The next part is expected to take this many times the median of the last ones."""


class Pace:
    """The times of the last five parts. The first part of an attempt, often with a cold JVM, counts only if none of the
    five is another one.
    """

    def __init__(self) -> None:
        self._last: deque[tuple[float, bool]] = deque(maxlen=_LAST)
        """Seconds, and whether they are known only from the claim of an attempt's first part."""
        self._first_s: float | None = None

    def learn(self, documents: Iterable[Checkpoint]) -> None:
        """Take the times of the parts that earlier attempts have committed from the documents of these parts.

        A part took the time from the verdict on the one before it in its attempt to its own, both of `success()`. An
        attempt's first part took at least the time from its claim, without what the script did before. It counts as
        long as this attempt's first part, or longer. Five attempts that began no other part, for want of time, tell
        that parts have become faster.
        """
        ends = sorted(
            (attempt.settled_ms, attempt.started_ms, attempt.run_id)
            for document in documents
            if (attempt := document.attempt).settled_by == Cause.SUCCESS.value and attempt.settled_ms is not None
        )
        before_ms: dict[str, int] = {}
        for end_ms, claimed_ms, run_id in ends:
            taken_ms = end_ms - before_ms.get(run_id, claimed_ms)
            if taken_ms >= 0:  # else the clock was set back
                self._last.append((taken_ms / 1000, run_id not in before_ms))
            before_ms[run_id] = end_ms

    def took(self, seconds: float) -> None:
        """Take the time of a part of this attempt."""
        if self._first_s is None:
            self._first_s = seconds
        else:
            self._last.append((seconds, False))

    @property
    def wanted_s(self) -> float | None:
        """The seconds that the next part is expected to take: the median and a fifth; None before the attempt's first
        part, which is always begun: otherwise a run could stand still.
        """
        if self._first_s is None:
            return None
        first = [max(seconds, self._first_s) for seconds, is_first in self._last if is_first] or [self._first_s]
        return median([seconds for seconds, is_first in self._last if not is_first] or first) * _SPARE
