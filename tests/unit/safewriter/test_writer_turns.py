"""A block in a turn: noted before its gate opens, and watched."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from safewriter import writer
from safewriter.errors import TurnLostError
from tests.unit.safewriter.block_parts import CLOSED, guarded


def test_a_block_in_a_turn_is_noted_before_its_gate_opens_and_watches_the_turn(block: SimpleNamespace) -> None:
    """It waits a second at most in each step, since a renewal may prolong the turn and a loss may shorten it."""
    for left_s, step_ms in ((9.0, 1000), (0.25, 250)):
        block.done.clear()
        block.turn = SimpleNamespace(left_s=left_s)
        with guarded() as sw:
            sw.success()
        assert block.done == [
            "verified",
            "noted",
            "opened",
            f"Watchdog of [{step_ms}]",
            "turn lost",
            "succeeded",
            "Watchdog stopped",
            "restored",
            CLOSED,
            "finished",
        ]


def test_a_write_that_cannot_be_noted_is_settled(block: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its gate never opens."""

    def refuse(*_: object) -> None:
        raise TurnLostError("another job has it")

    monkeypatch.setattr(writer, "record_in_turn", refuse)
    block.turn = SimpleNamespace(left_s=9.0)
    with pytest.raises(TurnLostError), guarded():
        pytest.fail("the block has begun")
    told = "not entered: another job has it"
    assert block.done == ["verified", "settled: it never began", "restored", CLOSED, told]


def test_a_write_that_was_committed_before_is_not_noted(
    block: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can no longer commit anything."""
    monkeypatch.setattr(writer, "claim", lambda _: SimpleNamespace(checkpoint="checkpoint", already_committed=True))
    block.turn = SimpleNamespace(left_s=9.0)
    with guarded():
        pass
    assert "noted" not in block.done
