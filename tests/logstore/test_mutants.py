"""Each Java mutant of the log store's list fits the current code: the text that it replaces is there exactly once."""

from __future__ import annotations

from pathlib import Path

from tests.logstore.mutants import mutants


def test_each_change_is_of_text_that_its_class_holds_once() -> None:
    """A mutant of code that has changed or gone tests nothing."""
    listed = list(mutants(Path()))

    assert {f"{one} ({one.stands} times)" for one in listed if one.stands != 1} == set()
    assert len({(one.of, one.old, one.new) for one in listed if one.new != one.old}) == len(listed) > 100
