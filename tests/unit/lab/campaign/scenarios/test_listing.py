"""The campaign's list of scenarios holds every file of fault tests once, and selects by subject or name."""

from __future__ import annotations

import pytest

from scripts.provision.place import ROOT
from tests.lab.campaign.scenarios.listing import FILES, is_chosen, subject_of


def test_each_file_is_there_once() -> None:
    """And every file of fault tests is in the list, so that none is forgotten."""
    assert len({*FILES}) == len(FILES)
    assert [file for file in FILES if not (ROOT / file).is_file()] == []
    faults = {str(path.relative_to(ROOT)) for path in (ROOT / "tests" / "faults").glob("test_*.py")}
    assert faults <= {*FILES}


def test_a_scenario_is_chosen_by_its_subject_or_its_name() -> None:
    """As in `--select`."""
    name = "tests/faults/test_reuse_kills.py::test_a_fault_at_the_commit_in_a_warm_machine[delta-torn]"
    assert subject_of(name) == "reuse"
    assert is_chosen(name, "reuse delta-torn")
    assert not is_chosen(name, "reuse -delta")
    assert not is_chosen(name, "snapshot")


@pytest.mark.parametrize("name", ["tests/faults/test_reuse_kills.py", "tests/unit/test_docs.py::test_one", "", "turn"])
def test_any_other_name_is_refused(name: str) -> None:
    """A whole file, a test that is no scenario."""
    with pytest.raises(ValueError, match="is no scenario; one is tests/"):
        subject_of(name)
