"""A deadline that comes early."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handler.microvm.haste import Haste

if TYPE_CHECKING:
    import pytest


def test_the_clock_moves_forward_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a move it goes on as time does, so that what follows the deadline's instants has its usual time."""
    now = [1000]
    monkeypatch.setattr("handler.microvm.haste.epoch_ms", lambda: now[0])
    haste = Haste()
    assert haste.clock() == 1000
    haste.move_to(5000)
    now[0] += 7
    assert haste.clock() == 5007
    haste.move_to(2000)
    assert haste.clock() == 5007
