"""The handler's supervisor beats while the child runs, and settles its writes within a budget, even if S3 fails."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from handler.runs.run_supervisor import RunSupervisor
from safewriter.objects import StoreError


class Fake:
    """Stands for the supervision of guarded writes and for the runs."""

    def __init__(self, settle: Any = lambda: ()) -> None:
        self.beats: list[str] = []
        self.cancelled = False
        self.fails = True
        self.missing: str | None = None
        self._settle = settle

    def renew_leases(self) -> None:
        self.beats.append("writes")

    def renew_lease(self, _run: object) -> None:
        self.beats.append("run")
        if self.fails:
            raise StoreError("slow down")

    def is_cancelled(self, _record: object) -> bool:
        self.beats.append("look")
        return self.cancelled

    def doubt(self) -> str | None:
        return self.missing

    def settle(self, *, budget_ms: int) -> Any:
        assert budget_ms >= 0
        return self._settle()


def supervisor(fake: Fake) -> RunSupervisor:
    return RunSupervisor(fake, fake, SimpleNamespace(record=None))  # type: ignore[arg-type]


def test_a_beat_renews_both_and_never_raises() -> None:
    """The next beat makes up for it."""
    fake = Fake()
    assert supervisor(fake).beat()
    assert fake.beats == ["writes", "run"]


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_beat_tells_whether_the_run_was_cancelled(*, cancelled: bool) -> None:
    """It checks after each renewal."""
    fake = Fake()
    fake.fails, fake.cancelled = False, cancelled
    assert supervisor(fake).beat() is not cancelled
    assert fake.beats == ["writes", "run", "look"]


def test_the_verdicts_are_passed_on() -> None:
    """Verdicts within the budget are returned unchanged, without a problem."""
    assert supervisor(Fake(lambda: ())).settle(10_000) == ((), "")


def test_verdicts_are_kept_beside_a_doubt() -> None:
    """Known verdicts are returned even if there may be more writes."""
    fake = Fake(lambda: ("a verdict",))
    fake.missing = "the journal was truncated"
    found: tuple[object, str] = supervisor(fake).settle(10_000)
    assert found == (("a verdict",), "the journal was truncated")


def test_what_cannot_be_settled_is_said_not_raised() -> None:
    """The cases are a store that fails, and one that hangs."""

    def fail() -> None:
        raise StoreError("gone")

    assert supervisor(Fake(fail)).settle(10_000) == (None, "StoreError: gone")
    release = threading.Event()
    assert supervisor(Fake(lambda: release.wait(60))).settle(10)[0] is None
    release.set()


def test_a_journal_that_cannot_be_read_is_said() -> None:
    """An error of the system is reported like one of the store."""

    def fail() -> None:
        raise OSError("journal")

    assert supervisor(Fake(fail)).settle(10_000) == (None, "OSError: journal")
