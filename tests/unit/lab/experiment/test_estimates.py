"""The experiment's statistics agree with the literature: Wilson's interval, exposure, cost of orphan files."""

from __future__ import annotations

import pytest

from tests.lab.experiment.estimates import cost_usd_per_month, exposure, upper_bound, wilson


@pytest.mark.parametrize(
    ("hits", "runs", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_is_wilson_s(hits: int, runs: int, low: float, high: float) -> None:
    """The examples of Newcombe, Statistics in Medicine 17 (1998), table I, method 3."""
    assert wilson(hits, runs) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("hits", "runs"), [(1, 0), (0, 0), (3, 2), (-1, 2)])
def test_what_is_no_share_is_refused(hits: int, runs: int) -> None:
    """No run, more hits than runs."""
    with pytest.raises(ValueError, match=f"{hits} of {runs}"):
        wilson(hits, runs)


def test_the_bound_of_no_case_in_many_is_nearly_three_by_their_number() -> None:
    """The rule of three (Hanley and Lippman-Hand, JAMA 249, 1983)."""
    assert upper_bound(1000) == pytest.approx(3 / 1000, rel=0.01)
    assert upper_bound(0) == 1


def test_the_paper_s_own_example_of_exposure() -> None:
    """3.5 s of gap in the last 10 s: more than one in three."""
    assert exposure(3500, 10) == pytest.approx(0.35)
    assert exposure(99_000, 10) == 1
    assert exposure(-5, 10) == 0


def test_the_paper_s_own_example_of_cost() -> None:
    """1.1 GB at 0.023 dollars."""
    assert cost_usd_per_month(1.1e9) == pytest.approx(0.0253)
