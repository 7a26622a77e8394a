"""Real kills of real Spark processes, read by deltalake and pyiceberg."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab.experiment.data import generated
from tests.lab.experiment.laboratory import Laboratory
from tests.lab.experiment.plan import PLANS, Run

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CELLS = {cell.name: cell for cell in PLANS["all"]}


@pytest.fixture(scope="module")
def laboratory() -> Iterator[Laboratory]:
    with Laboratory({"22k": generated(200)}) as made:
        yield made


@pytest.mark.parametrize(
    ("name", "truth", "verdict", "orphans"),
    [
        ("A-delta-22k-commit-guarded", "rollback_success", "rolled_back", 0),
        ("A-iceberg-22k-data-guarded", "rollback_success", "rolled_back", 0),
        pytest.param("A-delta-22k-commit-plain", "silent_loss", None, 1, marks=pytest.mark.matrix),
        pytest.param("A-iceberg-22k-data-plain", "silent_loss", None, 1, marks=pytest.mark.matrix),
        pytest.param("O-iceberg-22k-baseline-guarded", "success", "committed", 0, marks=pytest.mark.matrix),
        pytest.param("A-delta-22k-data-plain", "silent_loss", None, 1, marks=pytest.mark.matrix),
        pytest.param("A-delta-22k-data-guarded", "rollback_success", "rolled_back", 0, marks=pytest.mark.matrix),
        pytest.param("O-delta-22k-fails-guarded", "rollback_success", "rolled_back", 0, marks=pytest.mark.matrix),
        pytest.param("A-delta-22k-baseline-plain", "success", None, 0, marks=pytest.mark.matrix),
        pytest.param("A-iceberg-22k-commit-plain", "silent_loss", None, 1, marks=pytest.mark.matrix),
    ],
)
def test_a_run_ends_as_its_cell_says(
    laboratory: Laboratory, name: str, truth: str, verdict: str | None, orphans: int
) -> None:
    """It is killed at the request that its phase names, and recovered if it was guarded."""
    found = laboratory.carry_out(Run(CELLS[name], 1), keeps_requests=True)
    assert (found.truth, found.verdict, found.orphans) == (truth, verdict, orphans), found.error
    assert found.killed is bool(CELLS[name].kill_phase)
    assert found.rows_added == (200 if truth == "success" else 0)
    assert (found.gap_ms is not None) is (truth == "success" or CELLS[name].fails)
    kinds = [span.key_class for span in found.requests if span.operation == "PutObject"]
    assert "data" in kinds
    assert ("checkpoint" in kinds) is (CELLS[name].use_safe_writer and CELLS[name].is_timed)
