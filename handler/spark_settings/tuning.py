"""The settings that a retry may change, such as memory and parallelism: they affect how a job runs, not what it writes.

All other settings of an event are part of the run: a setting that is not listed here may change rows.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TUNING", "digest_of"]

TUNING: Final = frozenset(
    {
        "spark.app.name",
        "spark.driver.memory",
        "spark.driver.cores",
        "spark.driver.memoryOverhead",
        "spark.driver.maxResultSize",
        "spark.executor.memory",
        "spark.executor.cores",
        "spark.executor.instances",
        "spark.executor.memoryOverhead",
        "spark.cores.max",
        "spark.dynamicAllocation.enabled",
        "spark.dynamicAllocation.minExecutors",
        "spark.dynamicAllocation.maxExecutors",
        "spark.dynamicAllocation.initialExecutors",
        "spark.memory.fraction",
        "spark.memory.storageFraction",
        "spark.task.maxFailures",
        "spark.default.parallelism",
        "spark.sql.shuffle.partitions",
    }
)


def digest_of(conf: Mapping[str, str]) -> str:
    """Return the hash of an event's settings, except those of `TUNING`."""
    settings = sorted((key, value) for key, value in conf.items() if key not in TUNING)
    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()
