"""The campaign judges a wrong script: its rows once with a success, or an error with all or none of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.lab.campaign.wrong.judging import Told, violations_of
from tests.lab.campaign.wrong.script import Script

if TYPE_CHECKING:
    from tests.lab.campaign.wrong.job import WrongJob

BEFORE, PART, AFTER = (1, 2), (1, 2, 3), (1, 2, 3, 4)
FAILED = Told("FAILED", BEFORE, "rolled_back")
DONE = Told("SUCCESS", AFTER, "committed")


def run(job: WrongJob) -> None:
    """It does nothing."""


SCRIPT = Script(family="none", table_format="delta", run=run, before=BEFORE, after=AFTER)
MERGE = replace(SCRIPT, before=AFTER, after=AFTER)


@pytest.mark.parametrize(
    ("attempts", "broken"),
    [
        pytest.param([DONE, DONE], [], id="done, and skipped"),
        pytest.param([FAILED, DONE], [], id="taken back, and written by the retry"),
        pytest.param([FAILED, FAILED], [], id="refused twice"),
        pytest.param([replace(FAILED, found=AFTER, verdict="committed")], [], id="an error, and all rows"),
        pytest.param([replace(FAILED, found=AFTER, verdict=None)], [], id="the same of several writes"),
        pytest.param([replace(DONE, found=BEFORE)], ["lost"], id="success without the rows"),
        pytest.param([replace(DONE, found=PART)], ["lost"], id="success with some of them"),
        pytest.param([DONE, replace(DONE, found=(*AFTER, 4))], ["doubled", "changed"], id="twice after the retry"),
        pytest.param([replace(DONE, found=(1, 2, 3, 3))], ["doubled", "lost"], id="one twice, and one missing"),
        pytest.param([replace(FAILED, found=PART)], ["gap"], id="an error, and a part"),
        pytest.param([replace(FAILED, found=(*AFTER, 4))], ["doubled"], id="an error, and a row twice"),
        pytest.param([replace(FAILED, found=AFTER)], ["wrong_verdict"], id="rolled back, and there"),
        pytest.param([replace(FAILED, verdict="committed")], ["wrong_verdict"], id="committed, and not there"),
        pytest.param([DONE, FAILED], ["changed"], id="gone again"),
    ],
)
def test_a_run_ends_with_its_rows_or_with_an_error_and_all_or_nothing(attempts: list[Told], broken: list[str]) -> None:
    """Of several attempts each is judged, and none takes away or doubles what is there."""
    assert violations_of(SCRIPT, attempts) == broken


def test_a_part_may_stay_behind_an_error_if_the_script_says_so() -> None:
    """With a success it may not, and a document that says rolled back has to say more."""
    script = replace(SCRIPT, parts=(PART,))
    told = replace(FAILED, found=PART)
    assert violations_of(script, [replace(told, verdict="committed")]) == []
    assert violations_of(script, [replace(told, is_incomplete=True)]) == []
    assert violations_of(script, [told]) == ["wrong_verdict"]
    assert violations_of(script, [replace(DONE, found=PART)]) == ["lost"]


def test_a_script_that_is_right_must_succeed() -> None:
    """So refusing everything is no way to pass."""
    assert violations_of(replace(SCRIPT, succeeds=(2,)), [FAILED, FAILED]) == ["refused"]
    assert violations_of(replace(SCRIPT, succeeds=(2,)), [FAILED, DONE]) == []


def test_other_tables_hold_their_rows_once() -> None:
    """After a success; behind an error nobody guards them."""
    script = replace(MERGE, others={"audit": (1, 2)})
    done = replace(DONE, others={"audit": (1, 2)})
    assert violations_of(script, [done]) == []
    assert violations_of(script, [replace(done, others={"audit": (1, 1, 2, 2)})]) == ["other_rows"]
    assert violations_of(script, [replace(FAILED, found=AFTER, verdict="committed")]) == []


def test_a_write_that_means_no_row_has_no_wrong_verdict() -> None:
    """Its table is the same before and after, so both words are true."""
    assert violations_of(MERGE, [replace(FAILED, found=AFTER)]) == []


def test_rows_of_another_job_are_no_matter_of_the_verdict() -> None:
    """A procedure has published them; the block itself wrote nothing."""
    script = replace(SCRIPT, is_foreign=True)
    assert violations_of(script, [replace(FAILED, found=AFTER, verdict="rolled_back")]) == []
