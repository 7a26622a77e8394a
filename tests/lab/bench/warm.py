"""Measure the sample job in a function that has run it before, beside a cold run of aws-samples/spark-on-aws-lambda.

One function of SoAL runs all the jobs, one after the other, on one table: the first is cold, all others are warm. The
peer runs in between, always cold, since it cannot reuse anything. The function's processes are inspected after each
warm job: a leak would show as growth.
"""

from __future__ import annotations

import statistics
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scripts.local.sample import put_sample
from soal.console.problem import Failure
from soal.invocation.report import report_of
from soal.local.names import BUCKETS, CHECKPOINTS, LAKE
from soal.testing.s3.embedded import EmbeddedS3
from tests.lab.bench.start import peer, soal_event, succeeded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import psutil

    from scripts.emulator.rie import LambdaEmulator
    from scripts.local.function import Function
    from soal.invocation.report import Report

__all__ = ["WarmCost", "measure"]

_SETTLED: Final = 10
"""The number of warm jobs before growth is measured: Java is still compiling."""


@dataclass(frozen=True, slots=True)
class _Held:
    """What the function's processes hold after a job. `memory_mb`: their unshared pages, in MB."""

    memory_mb: float
    threads: int
    files: int


@dataclass(frozen=True, slots=True)
class WarmCost:
    """Medians in milliseconds, from the event to the answer. `ratio`: the warm jobs' time by the peer's.

    `early` and `late`: the first and the last fifth of the warm jobs after the first ten. Memory (in MB), threads and
    open files are those of all processes of the function after a job.
    """

    jobs: int
    peer_ms: float
    cold_ms: float
    warm_ms: float
    warm_ms_p95: float
    ratio: float
    early_ms: float
    late_ms: float
    early_mb: float
    late_mb: float
    early_threads: int
    late_threads: int
    early_files: int
    late_files: int


def measure(
    jobs: int,
    rounds: int,
    function: Callable[[Mapping[str, str]], Function],
    progress: Callable[[int], None] = lambda _: None,
) -> WarmCost:
    """Run `jobs` warm jobs, and the peer at `rounds` points among them; `function` makes SoAL's function.

    Raises `Problem` if a job fails, or was not warm.
    """
    peers: list[float] = []
    warm: list[float] = []
    held: list[_Held] = []
    event = soal_event(f"s3a://{LAKE}/{uuid.uuid4().hex}")
    with EmbeddedS3(buckets=BUCKETS) as s3:
        put_sample(s3.observer())
        own = function({**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS})
        with own.emulator() as emulator:
            cold_ms = float(_run(emulator, event, own.timeout_s).duration_ms)
            for number in range(jobs):
                if number % max(1, jobs // rounds) == 0 and len(peers) < rounds:
                    peers.append(peer(s3, None).ms)
                report = _run(emulator, event, own.timeout_s)
                if report.result is None or not report.result.warm_start:
                    raise Failure(f"job {number + 1} was not warm", todo="read its log")
                warm.append(float(report.duration_ms))
                held.append(_held(emulator.processes()))
                progress(number + 1)
    after = slice(_SETTLED, None) if jobs > 2 * _SETTLED else slice(None)
    fifth = max(1, len(warm[after]) // 5)
    early, late = _median(held[after][:fifth]), _median(held[after][-fifth:])
    return WarmCost(
        jobs=jobs,
        peer_ms=statistics.median(peers),
        cold_ms=cold_ms,
        warm_ms=statistics.median(warm),
        warm_ms_p95=sorted(warm)[int(0.95 * (len(warm) - 1))],
        ratio=statistics.median(warm) / statistics.median(peers),
        early_ms=statistics.median(warm[after][:fifth]),
        late_ms=statistics.median(warm[after][-fifth:]),
        early_mb=early.memory_mb,
        late_mb=late.memory_mb,
        early_threads=early.threads,
        late_threads=late.threads,
        early_files=early.files,
        late_files=late.files,
    )


def _run(emulator: LambdaEmulator, event: object, timeout_s: int) -> Report:
    return succeeded(report_of(emulator.invoke(event), timeout_s))


def _held(processes: Sequence[psutil.Process]) -> _Held:
    own_mb = sum(process.memory_full_info().uss for process in processes) / 2**20
    return _Held(own_mb, sum(one.num_threads() for one in processes), sum(one.num_fds() for one in processes))


def _median(held: Sequence[_Held]) -> _Held:
    return _Held(
        statistics.median(one.memory_mb for one in held),
        round(statistics.median(one.threads for one in held)),
        round(statistics.median(one.files for one in held)),
    )
