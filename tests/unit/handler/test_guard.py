from __future__ import annotations

import threading
from typing import Any

from handler.guard import Guard
from safewriter.objects import StoreError


class Fake:
    """Both the guarded writes' supervision and the runs."""

    def __init__(self, settle: Any = lambda: ()) -> None:
        self.beats: list[str] = []
        self._settle = settle

    def renew_leases(self) -> None:
        self.beats.append("writes")

    def renew_lease(self, _run: object) -> None:
        self.beats.append("run")
        raise StoreError("slow down")

    def settle(self, *, budget_ms: int) -> Any:
        assert budget_ms >= 0
        return self._settle()


def guard(fake: Fake) -> Guard:
    return Guard(fake, fake, object(), 30_000)  # type: ignore[arg-type]


def test_a_beat_renews_both_and_never_raises() -> None:
    """The next one makes up for it."""
    fake = Fake()
    guard(fake).beat()
    assert fake.beats == ["writes", "run"]


def test_the_verdicts_are_passed_on() -> None:
    """In time."""
    assert guard(Fake(lambda: ())).settle(10_000).writes == ()


def test_what_cannot_be_settled_is_said_not_raised() -> None:
    """A store that fails, and one that hangs."""

    def fail() -> None:
        raise StoreError("gone")

    settled = guard(Fake(fail)).settle(10_000)
    assert (settled.writes, settled.problem) == (None, "StoreError: gone")
    release = threading.Event()
    assert guard(Fake(lambda: release.wait(60))).settle(10).writes is None
    release.set()
