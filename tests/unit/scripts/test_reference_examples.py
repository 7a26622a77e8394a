"""The generated reference page lists each of Spark's own examples with its end on each variant of the image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts import reference
from tests.lab.results import append
from tests.unit.lab.examples.test_record import record

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_each_example_has_a_row_with_its_end_on_each_variant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row shows a reason up to its first colon; an example that neither ran nor says why has its state."""
    path = tmp_path / "examples.jsonl"
    for name, slim, full in (
        ("a.py", {"state": "FAILED", "is_usage": True, "says": "the image has no NumPy: write"}, {}),
        ("b.py", {"state": None, "needs": "a server"}, {"state": "TIMED_OUT"}),
        ("c.py", {"state": "FAILED", "says": "ValueError: x"}, {}),
    ):
        append(path, record(example=name, variant="slim", **slim), record(example=name, **full))
    monkeypatch.setattr(reference, "KEPT", path)
    said, _, *table = reference.examples().splitlines()
    assert said == "Of 3 examples 0 run on slim and 2 on full."
    assert table[2:] == [
        "| `a.py` | the image has no NumPy | runs |",
        "| `b.py` | needs a server | runs until the deadline ends it |",
        "| `c.py` | FAILED: ValueError | runs |",
    ]
