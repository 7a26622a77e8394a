"""A stream of the lab's turns keeps requests that came before their rows for its next batch, the same on replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.turns.pending import Pending

if TYPE_CHECKING:
    from pathlib import Path


def test_the_next_batch_takes_up_what_a_batch_has_kept(tmp_path: Path) -> None:
    """The first batch has nothing to take up, nor has one whose predecessor kept nothing."""
    pending = Pending(tmp_path / "pending")
    assert pending.before(0) == {}
    pending.keep(0, {"a": "1"})
    assert pending.before(1) == {"a": "1"}
    assert pending.before(2) == {}


def test_a_batch_that_is_delivered_again_keeps_what_it_kept_first(tmp_path: Path) -> None:
    """Its commit may have landed already without those requests, so nothing else may be decided now."""
    pending = Pending(tmp_path)
    pending.keep(0, {"a": "1"})
    assert pending.keep(0, {}) == {"a": "1"}
    assert pending.before(1) == {"a": "1"}
    assert [path.name for path in tmp_path.iterdir()] == ["0.json"]
