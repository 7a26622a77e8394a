"""A deadline that comes early."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handler.microvm.advanced_clock import AdvancedClock

if TYPE_CHECKING:
    import pytest


def test_the_clock_moves_forward_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a move it goes on as time does, so that what follows the deadline's instants has its usual time."""
    now = [1000]
    monkeypatch.setattr("handler.microvm.advanced_clock.epoch_ms", lambda: now[0])
    clock = AdvancedClock()
    assert clock.clock() == 1000
    clock.move_to(5000)
    now[0] += 7
    assert clock.clock() == 5007
    clock.move_to(2000)
    assert clock.clock() == 5007
