"""The campaign's list of wrong scripts describes each mistake, covers every family, and selects by words."""

from __future__ import annotations

import pytest

from tests.lab.campaign.running import run
from tests.lab.campaign.wrong.listing import SCRIPTS, script_of, selected


def test_each_script_says_its_mistake_in_a_sentence() -> None:
    """It is what a reader of a broken result sees first."""
    for one in SCRIPTS.values():
        assert one.mistake.endswith("."), one.name
        assert "\n" not in one.mistake, one.name


def test_there_are_many_scripts_of_each_family() -> None:
    """At least sixty functions, and each family on the format that it is about."""
    assert len({one.run for one in SCRIPTS.values()}) >= 60
    assert {one.family for one in SCRIPTS.values()} >= {"sinks", "swallowed", "threads", "transactions", "sessions"}


def test_a_part_is_neither_nothing_nor_all() -> None:
    """Else it would not have to be declared."""
    for one in SCRIPTS.values():
        assert not {one.before, one.after} & set(one.parts), one.name


def test_an_attempt_that_must_succeed_is_one_of_the_run() -> None:
    """Counted from 1."""
    for one in SCRIPTS.values():
        assert set(one.succeeds) <= set(range(1, one.attempts + 1)), one.name


def test_scripts_are_chosen_by_words() -> None:
    """As all cases of the campaign are."""
    assert selected("delta sinks as-table -without") == ["delta-sinks-save-as-table"]
    assert selected("hudi") == []


def test_a_name_that_is_no_script_is_refused() -> None:
    """The message shows one that is."""
    with pytest.raises(ValueError, match=r"is no script; one is [a-z]+-catalogs-"):
        script_of("delta-sinks-nowhere")


def test_words_that_name_no_script_are_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Before anything is begun."""
    folder = tmp_path_factory.mktemp("results")
    with pytest.raises(ValueError, match="selects no"):
        run(folder, "scripts", select="hudi", jobs=1, budget_s=None)
    assert [*folder.iterdir()] == []
