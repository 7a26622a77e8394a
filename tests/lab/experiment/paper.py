"""The paper's figures, for comparison: "Characterizing and Fixing Silent Data Loss in Spark-on-AWS-Lambda with Open
Table Formats", tables II to XI. Its machine was an Apple M; its S3, LocalStack.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BASELINE_MS", "DURATIONS_MS", "EDGE_CASES", "GAP_MS", "OVERHEAD_MS", "ROLLBACK_MS", "SIZES_MB", "WINDOW_S"]

SIZES_MB: Final = {"22k": 3.8, "100k": 9.4, "500k": 47.9}
BASELINE_MS: Final = {"delta": (7779, 412), "iceberg": (5856, 338)}
"""Mean and standard deviation of part A."""
DURATIONS_MS: Final = {
    ("delta", "22k"): (7644, 4124),
    ("delta", "100k"): (7638, 4108),
    ("delta", "500k"): (9020, 4468),
    ("iceberg", "22k"): (5477, 4090),
    ("iceberg", "100k"): (None, 4132),
    ("iceberg", "500k"): (None, 4436),
}
"""Means of a baseline and of a run that is killed after its data. Two baselines failed for lack of memory."""
GAP_MS: Final = {"22k": 3500, "500k": 4550}
"""By the paper's measure: the baseline's mean minus that of the killed runs. On Delta."""
OVERHEAD_MS: Final = 100
ROLLBACK_MS: Final = (100, 200)
WINDOW_S: Final = 10.0
"""The last seconds before a function's timeout, in which the paper's example ends."""
EDGE_CASES: Final = (
    ("Kill before the data", "No", "Yes (no checkpoint)"),
    ("Kill before the commit, no guard", "Yes", "No"),
    ("Kill before the commit, guarded", "No", "Yes (checkpoint)"),
    ("Kill during the rollback", "Unlikely", "Yes (stale checkpoint)"),
    ("Kill during the checkpoint's write", "No", "No (before the data)"),
    ("Two writers at once", "No", "Yes (exception)"),
)
"""Table X: the case, whether data is lost, whether the loss can be detected."""
