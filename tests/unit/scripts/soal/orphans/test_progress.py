from __future__ import annotations

import io

import pytest
from rich.console import Console

from scripts.soal.orphans.progress import Counting


@pytest.mark.parametrize("terminal", [True, False])
def test_how_far_it_is_shows_on_a_terminal_only(terminal: object) -> None:
    """What is named like markup is shown as it is."""
    said = io.StringIO()
    with Counting(Console(file=said, force_terminal=bool(terminal), width=120), "[red]looking") as counting:
        counting.seen(1234)
        counting.says("deleting")
        counting.seen(7)
    assert ("deleting" in said.getvalue()) is bool(terminal)
    assert ("7 objects" in said.getvalue()) is bool(terminal)
