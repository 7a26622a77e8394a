"""The formulas of the paper: Wilson's interval (3), the probability of exposure (1), the cost of orphan files (4)."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["cost_usd_per_month", "exposure", "upper_bound", "wilson"]

_Z: Final = 1.959964
"""The 97.5 % quantile of the normal distribution, for a two-sided interval of 95 %."""
_USD_PER_GB_MONTH: Final = 0.023
"""S3 Standard in us-east-1: https://aws.amazon.com/s3/pricing/"""


def wilson(hits: int, runs: int) -> tuple[float, float]:
    """Return the 95 % interval of a share, by Wilson's score (1927), as two numbers between 0 and 1."""
    if not 0 <= hits <= runs or runs == 0:
        raise ValueError(f"{hits} of {runs} is no share")
    share, square = hits / runs, _Z * _Z
    middle = share + square / (2 * runs)
    half = _Z * math.sqrt(share * (1 - share) / runs + square / (4 * runs * runs))
    whole = 1 + square / runs
    # Rounding must not leave the formula's range.
    return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)


def upper_bound(runs: int) -> float:
    """Return the 95 % upper bound of the rate of an event not seen in `runs` runs (Clopper and Pearson, one-sided)."""
    return 1 - 0.05 ** (1 / runs) if runs else 1.0


def exposure(gap_ms: float, window_s: float) -> float:
    """Return the probability that a random kill within a window of seconds falls into the gap."""
    return min(1.0, max(0.0, gap_ms / 1000 / window_s))


def cost_usd_per_month(size_bytes: float) -> float:
    """Return S3's price for a month of storage."""
    return size_bytes / 1e9 * _USD_PER_GB_MONTH
