"""`soal runs cost` sums up what Lambda bills for each job by the results of its attempts."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from safewriter.deadline import epoch_ms
from soal.runs.cost import Attempt, Costs, costs_of, lambda_price
from soal.runs.ledger import Ledger
from tests.support.memory_store import MemoryObjectStore


def result(**fields: Any) -> dict[str, Any]:
    times = {"totalMs": fields.pop("total_ms", 120), "remainingMs": 1}
    memory = {"limitMb": fields.pop("limit_mb", 1536), "peakMb": None}
    told = {"runId": "r", "name": None, "clientToken": "t", "coldStart": True, "timings": times, "memory": memory}
    return {**told, **fields}


def costs_since(bucket: MemoryObjectStore, *, days: float) -> Costs:
    since = datetime.now(UTC) - timedelta(days=days)
    return costs_of(*Ledger(bucket, epoch_ms).attempts(since), since=since, architecture="x86_64")


def test_the_price_is_that_of_aws_s_own_example() -> None:
    """Three million requests of 120 ms at 1,536 MB are 540,000 GB-seconds, $9.00, and $0.60 for the requests."""
    attempt = Attempt.model_validate(result())
    assert lambda_price([attempt], "x86_64") * 3_000_000 == pytest.approx(9.60, abs=0.001)


def test_attempts_are_summed_up_by_job() -> None:
    """A job is a name, or a script; a short attempt costs a minute on the two others."""
    bucket = MemoryObjectStore()
    attempts = [
        result(runId="1", name="nightly", clientToken="a", total_ms=30_000, limit_mb=2048),
        result(runId="2", name="nightly", clientToken="a", total_ms=90_000, limit_mb=2048, coldStart=False),
        result(runId="3", clientToken=None, entryPoint="s3://scripts/hourly.py", total_ms=1000, limit_mb=1024),
        result(runId="4", clientToken=None, entryPoint="s3://scripts/hourly.py", total_ms=1000, limit_mb=1024),
    ]
    for attempt in attempts:
        bucket.put(f"results/{attempt['runId']}/run_result.json", json.dumps(attempt).encode())
    bucket.put("results/bad/run_result.json", b'{"timings": {"totalMs": 1e400}}')
    costs = costs_since(bucket, days=1)
    nightly, hourly = costs.jobs
    assert (nightly.job, nightly.runs, nightly.attempts, nightly.cold_starts) == ("nightly", 1, 2, 1)
    assert (nightly.seconds, nightly.gb_seconds) == (120, 240)
    assert nightly.glue == pytest.approx((60 + 90) * 2 * 0.44 / 3600)
    assert (hourly.job, hourly.runs, hourly.gb_seconds) == ("s3://scripts/hourly.py", 2, 2)
    assert costs.unread == (bucket.uri("results/bad/run_result.json"),)


def test_only_results_of_the_last_days_count() -> None:
    """Each is dated by the store."""
    bucket = MemoryObjectStore()
    bucket.put("results/1/run_result.json", json.dumps(result()).encode())
    assert costs_since(bucket, days=0).jobs == ()
