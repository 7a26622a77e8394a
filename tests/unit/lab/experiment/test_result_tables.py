"""The experiment's tables II to XI count losses by exit code and by rows, and every broken promise."""

from __future__ import annotations

import signal
from itertools import product
from typing import Any

import pytest

from tests.lab.experiment.judging import Found, outcome_of, truth_of
from tests.lab.experiment.plan import PLANS, Run
from tests.lab.experiment.result_tables import ResultTable, is_broken, tables
from tests.unit.lab.experiment.records import record

RUNS = [Run(cell, number) for cell in PLANS["all"] for number in (1, 2)]
RECORDS = [record(run) for run in RUNS]


def named(title: str, records: list[object] | None = None) -> ResultTable:
    return next(one for one in tables(records or RECORDS) if one.title.startswith(title))  # type: ignore[arg-type]


def test_every_table_of_the_paper_is_there() -> None:
    """II to XI, of which VII and XI are one."""
    numbers = {one.title.partition(". ")[0] for one in tables(RECORDS)}
    assert numbers >= {"II", "III", "IV", "V", "VI", "VII and XI", "VIII", "IX", "X"}


def test_a_row_has_a_cell_for_each_column() -> None:
    """Of each table."""
    for one in tables(RECORDS):
        assert {len(row) for row in one.rows} == {len(one.header)}, one.title


def test_a_loss_is_counted_by_the_exit_code_and_by_the_rows() -> None:
    """They are two columns."""
    landed = [
        record(run, rows_added=100, truth="committed_when_killed")
        if run.cell.name == "A-delta-22k-commit-plain"
        else record(run)
        for run in RUNS
    ]
    delta, iceberg = named("VI. ", [*landed]).rows
    assert delta[:4] == ("Delta Lake", "2", "2 (100 %)", "0 (0 %)")
    assert iceberg[:4] == ("Apache Iceberg", "2", "2 (100 %)", "2 (100 %)")
    assert named("Where", [*landed]).rows[0][:3] == ("silent_loss", "committed_when_killed", "2")


def test_the_gap_is_told_in_both_ways() -> None:
    """By the requests 150 ms, by the means of whole processes 2,000."""
    assert named("The gap").rows[0] == ("Delta Lake", "22k", "150", "150 to 150", "2000", "3,500")


def test_the_exposure_is_told_in_both_ways() -> None:
    """Of the last ten seconds, beside the paper's."""
    assert named("Exposure").rows[0] == ("Delta Lake", "22k", "1.5 %", "20 %", "35 %")


def test_each_disagreement_of_the_classifiers_has_its_reason() -> None:
    """Whatever can be found of a run."""
    for code, missed, guarded, fails, added, verdict in product(
        (0, 1, -signal.SIGKILL), (False, True), (False, True), (False, True), (0, 3, 7), (None, "committed", "unknown")
    ):
        found = Found(code, missed, guarded, fails, added, 7, verdict)
        outcome, truth = outcome_of(found), truth_of(found)
        one = record(RUNS[0], outcome=outcome, truth=truth)
        (row,) = named("Where", [one]).rows
        assert row == ("nowhere", "", "0", "") if outcome == truth else (row[:3] == (outcome, truth, "1") and row[3])


def test_a_broken_promise_is_counted_and_no_bound_is_told() -> None:
    """Only of guarded runs."""
    assert named("The promise").rows == (("16", "8", "0", "31.23 %"),)
    broken = [
        record(run, truth="false_verdict") if run.id == "A-delta-22k-data-guarded-001" else record(run) for run in RUNS
    ]
    assert named("The promise", [*broken]).rows == (("16", "8", "1", ""),)
    assert sum(map(is_broken, broken)) == 1


@pytest.mark.parametrize(
    "other", [{"orphans": 1}, {"truth": "visible_error"}, {"truth": "not_killed", "use_safe_writer": False}]
)
def test_files_that_are_left_errors_and_kills_that_did_not_come_are_broken_too(other: dict[str, Any]) -> None:
    """A report must not be green over them."""
    run = next(run for run in RUNS if run.cell.use_safe_writer and run.cell.kill_phase)
    assert not is_broken(record(run))
    assert is_broken(record(run, **other))
