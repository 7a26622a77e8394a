"""Measure a cold run of the sample job on the image's variant full beside one on slim.

Each runs in a fresh function, from the event to the answer, in turn on one embedded S3, on a new table.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scripts.local.sample import put_sample
from soal.local.names import BUCKETS, CHECKPOINTS
from soal.testing.s3.embedded import EmbeddedS3
from tests.lab.bench.start import Run, new_table, soal_event, succeeded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scripts.local.function import Function

__all__ = ["VariantsCost", "measure"]


@dataclass(frozen=True, slots=True)
class VariantsCost:
    """Medians over `rounds` pairs: milliseconds from the event to a cold function's answer, CPU seconds, and the pairs'
    ratios, full to slim.
    """

    rounds: int
    slim_ms: float
    full_ms: float
    ratio: float
    ratio_min: float
    ratio_max: float
    slim_cpu_s: float
    full_cpu_s: float
    cpu_ratio: float


def measure(
    rounds: int,
    slim: Callable[[Mapping[str, str]], Function],
    full: Callable[[Mapping[str, str]], Function],
    progress: Callable[[int], None] = lambda _: None,
) -> VariantsCost:
    """Run `rounds` pairs; the variants alternate in going first. Raises `Problem` if a job fails."""
    pairs: list[tuple[Run, Run]] = []
    with EmbeddedS3(buckets=BUCKETS) as s3:
        put_sample(s3.observer())
        variables = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
        for turn in range(rounds):
            if turn % 2 == 0:
                ours = (_cold(slim(variables)), _cold(full(variables)))
            else:
                later = _cold(full(variables))
                ours = (_cold(slim(variables)), later)
            pairs.append(ours)
            progress(turn + 1)
    ratios = [second.ms / first.ms for first, second in pairs]
    return VariantsCost(
        rounds=rounds,
        slim_ms=statistics.median(first.ms for first, _ in pairs),
        full_ms=statistics.median(second.ms for _, second in pairs),
        ratio=statistics.median(ratios),
        ratio_min=min(ratios),
        ratio_max=max(ratios),
        slim_cpu_s=statistics.median(first.cpu_s for first, _ in pairs),
        full_cpu_s=statistics.median(second.cpu_s for _, second in pairs),
        cpu_ratio=statistics.median(second.cpu_s / first.cpu_s for first, second in pairs),
    )


def _cold(function: Function) -> Run:
    report = succeeded(function.invoke(soal_event(new_table())))
    return Run(float(report.duration_ms), report.cpu_s)
