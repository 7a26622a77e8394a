"""The arithmetic of several writers: what failed has said so, and what is neither in the table nor failed is lost."""

from __future__ import annotations

import pytest

from tests.lab.bench.fanout import Round, Setting, row_of

PLAIN = (Round(1.0, 0), Round(2.0, 1), Round(4.0, 0))


def test_an_append_that_nobody_reported_is_lost() -> None:
    """Of 12 one failed and 9 are in the table."""
    row = row_of(Setting("delta", "-", 4, 30), "default", 9, (Round(2.0, 0), Round(3.0, 1), Round(4.0, 0)), PLAIN)
    assert (row.writers, row.rounds, row.sent, row.failed, row.landed, row.lost) == (4, 3, 12, 1, 9, 2)
    assert row.landed_per_s == pytest.approx(1.0)


def test_the_ratio_is_that_of_rounds_side_by_side() -> None:
    """The median of 2, 1.5 and 5; the ratio of the medians would be 1.5."""
    row = row_of(Setting("delta", "-", 4, 30), "guarded", 12, (Round(2.0, 0), Round(3.0, 0), Round(20.0, 0)), PLAIN)
    assert (row.round_s, row.ratio, row.lost) == (3.0, 2.0, 0)
