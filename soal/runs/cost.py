"""The price of attempts by their own results, and what the same time costs on AWS Glue and EMR Serverless."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from soal.console.view import moment

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

__all__ = ["PRICES_OF", "Attempt", "Costs", "JobCost", "costs_of", "gb_seconds", "lambda_price"]

PRICES_OF: Final = "us-east-1, first tier, 2026-11-27"
"""Region, tier and date of the prices below, in US dollars; read from public price pages, not from the price list."""
_LAMBDA: Final = {"x86_64": 0.0000166667, "arm64": 0.0000133334}
"""For a GB-second: https://aws.amazon.com/lambda/pricing/."""
_REQUEST: Final = 0.20 / 1_000_000
_DPU_S: Final = 0.44 / 3600
"""For a second of a DPU, of which a Spark job of Glue has at least two: https://aws.amazon.com/glue/pricing/."""
_DPUS: Final = 2
_WORKERS: Final = 2
_WORKER_S: Final = (4 * 0.052624 + 16 * 0.0057785) / 3600
"""For a second of EMR Serverless' default worker, 4 vCPU and 16 GB; a job has a driver and at least one executor:
https://aws.amazon.com/emr/pricing/.
"""
_LEAST_S: Final = 60.0
"""Both bill at least a minute of a job."""
_Count = Annotated[int, Field(ge=0, lt=2**53)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", alias_generator=to_camel, populate_by_name=True)


class _Times(_Part):
    total_ms: _Count


class _Memory(_Part):
    limit_mb: _Count


class Attempt(_Part):
    """An attempt's result, as far as its price needs it."""

    name: str | None
    entry_point: str | None = None
    client_token: str | None
    run_id: str | None
    cold_start: bool
    timings: _Times
    memory: _Memory


@dataclass(frozen=True, slots=True)
class JobCost:
    """The attempts of a job: of one `name`, or of one script without a name. Prices in US dollars."""

    job: str | None
    attempts: int
    runs: int
    cold_starts: int
    seconds: float
    gb_seconds: float
    price: float
    glue: float
    emr_serverless: float


@dataclass(frozen=True, slots=True)
class Costs:
    """The jobs since a time, the dearest first. `unread`: the URIs of results that cannot be read."""

    since: str
    architecture: str
    prices_of: str
    jobs: tuple[JobCost, ...]
    unread: tuple[str, ...]


def costs_of(attempts: Iterable[Attempt], unread: Iterable[str], *, since: datetime, architecture: str) -> Costs:
    """Return the costs of attempts by their jobs. An attempt that was killed left no result."""
    by_job: dict[str | None, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        by_job[attempt.name or attempt.entry_point].append(attempt)
    jobs = [_cost(job, of_job, architecture) for job, of_job in by_job.items()]
    jobs.sort(key=lambda cost: (-cost.price, cost.job or ""))
    return Costs(moment(since), architecture, PRICES_OF, tuple(jobs), tuple(unread))


def gb_seconds(attempt: Attempt) -> float:
    """Return what Lambda bills of an attempt, without the start of a cold sandbox."""
    return attempt.memory.limit_mb / 1024 * attempt.timings.total_ms / 1000


def lambda_price(attempts: Iterable[Attempt], architecture: str) -> float:
    """Return the price of attempts in US dollars: their GB-seconds and requests."""
    return sum(gb_seconds(attempt) * _LAMBDA[architecture] + _REQUEST for attempt in attempts)


def _cost(job: str | None, attempts: list[Attempt], architecture: str) -> JobCost:
    billed_s = [max(_LEAST_S, attempt.timings.total_ms / 1000) for attempt in attempts]
    return JobCost(
        job=job,
        attempts=len(attempts),
        runs=len({attempt.client_token or attempt.run_id for attempt in attempts}),
        cold_starts=sum(attempt.cold_start for attempt in attempts),
        seconds=sum(attempt.timings.total_ms for attempt in attempts) / 1000,
        gb_seconds=sum(map(gb_seconds, attempts)),
        price=lambda_price(attempts, architecture),
        glue=sum(billed_s) * _DPUS * _DPU_S,
        emr_serverless=sum(billed_s) * _WORKERS * _WORKER_S,
    )
