"""The experiment's plan has the paper's 860 runs, each with a lasting name, in an order that a seed draws."""

from __future__ import annotations

from collections import Counter

from tests.lab.experiment.plan import PLANS, runs_of


def test_the_plan_is_the_paper_s_table_iii() -> None:
    """860 runs: 100, 150, 150, 50 and 50 in part A, 180 and 180 in part B."""
    counts = Counter[tuple[str, str, bool]]()
    for cell in PLANS["paper"]:
        counts[cell.part, cell.kill_phase, cell.use_safe_writer] += cell.runs
    assert counts == {
        ("A", "", False): 100,
        ("A", "data", False): 150,
        ("A", "commit", False): 150,
        ("A", "data", True): 50,
        ("A", "commit", True): 50,
        ("B", "", False): 180,
        ("B", "data", False): 180,
    }
    assert counts.total() == 860


def test_each_cell_has_a_run_however_small_the_scale() -> None:
    """A quick look sees all of them."""
    timed, others = runs_of("all", scale=0.001, seed=1)
    assert {run.cell for run in (*timed, *others)} == set(PLANS["all"])
    assert len((*timed, *others)) == len(PLANS["all"])


def test_a_run_has_the_same_name_at_each_scale_and_in_each_order() -> None:
    """By it a run is known as done."""
    few = {run.id for part in runs_of("paper", scale=0.1, seed=1) for run in part}
    all_ = [run.id for part in runs_of("paper", scale=1, seed=2) for run in part]
    assert len(set(all_)) == len(all_) == 860
    assert few < set(all_)


def test_the_order_is_the_seed_s() -> None:
    """The same for everybody, and of all cells mixed."""
    once, again, other = (runs_of("paper", scale=1, seed=seed)[0] for seed in (1, 1, 2))
    assert once == again != other


def test_whatever_is_compared_by_its_time_has_the_machine_alone() -> None:
    """Baselines, and all of part B."""
    timed, others = runs_of("all", scale=1, seed=1)
    assert all(not run.cell.kill_phase or run.cell.part == "B" for run in timed)
    assert all(run.cell.kill_phase and run.cell.part != "B" for run in others)
