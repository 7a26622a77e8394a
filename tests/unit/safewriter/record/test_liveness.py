"""A watcher tells by signs of life, lease and grace whether the owner of an S3 object still lives."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from safewriter.record.liveness import GRACE_MS, LEASE_MS, Owner, Sighting, is_over, watch

if TYPE_CHECKING:
    from collections.abc import Callable

START_MS = 1_000_000


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


class Watched:
    """An owner that renews its lease as `beats` says, seen by a clock that only sleeping moves."""

    def __init__(
        self, *, beats: Callable[[int], bool] = lambda _: False, etag: Callable[[int], str] = lambda _: "a"
    ) -> None:
        self.now_ms = START_MS
        self.last_ms = START_MS
        self._beats = beats
        self._etag = etag
        self.looks = 0

    def sleep(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)
        if self._beats(self.now_ms - START_MS):
            self.last_ms = self.now_ms

    def look(self) -> Sighting:
        self.looks += 1
        return Sighting(self._etag(self.now_ms - START_MS), at(self.last_ms), at(self.now_ms), None)

    def watch(self, may_wait: Callable[[], bool] = lambda: True) -> Owner:
        return watch(self.look(), self.look, may_wait=may_wait, sleep=self.sleep)


@pytest.mark.parametrize(
    ("end_ms", "now_ms", "over"),
    [(None, 10**12, False), (0, GRACE_MS, False), (0, GRACE_MS + 1, True), (5_000, GRACE_MS + 1, False)],
)
def test_an_end_is_over_only_after_its_grace(end_ms: int | None, now_ms: int, over: object) -> None:
    """An unknown end never is, and the end of the epoch is one like any other."""
    assert is_over(end_ms, at(now_ms)) is over


def test_silence_for_a_leases_length_is_death() -> None:
    """The watcher waits for it, and not longer."""
    watched = Watched()
    assert watched.watch() is Owner.DEAD
    assert LEASE_MS < watched.now_ms - START_MS <= LEASE_MS + 2_000


def test_a_sign_of_life_ends_the_watch_at_once() -> None:
    """An owner with two signs of life is alive."""
    watched = Watched(beats=lambda passed_ms: passed_ms >= 3_000)
    assert watched.watch() is Owner.ALIVE
    assert watched.now_ms - START_MS == 3_000


def test_an_object_that_changes_has_another_owner() -> None:
    """Its new owner is looked at from the beginning."""
    assert Watched(etag=lambda passed_ms: "a" if passed_ms < 2_000 else "b").watch() is Owner.REPLACED


def test_an_object_that_is_gone_has_no_owner() -> None:
    """It counts as changed, so the watcher reads again instead of settling a dead owner."""
    watched = Watched()
    assert watch(watched.look(), lambda: None, may_wait=lambda: True, sleep=watched.sleep) is Owner.REPLACED


def test_whoever_may_not_wait_takes_the_owner_for_alive() -> None:
    """Giving up is the safe answer."""
    watched = Watched()
    assert watched.watch(may_wait=lambda: False) is Owner.ALIVE
    assert watched.looks == 1


def test_an_owner_past_its_end_is_dead_whatever_its_lease_says() -> None:
    """The platform has killed it long ago."""
    assert Sighting("a", at(START_MS), at(START_MS), START_MS - GRACE_MS - 1).is_dead
