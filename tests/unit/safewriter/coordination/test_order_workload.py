"""Hourly Ingestion and Mutation and a daily TTL at one lock, in every order in which the jobs can ask."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import pytest

from safewriter.coordination.configuration import Configuration, Edge, FirstRun, Mode
from safewriter.coordination.order import check_startable, obstacle
from safewriter.coordination.record import End, Record
from safewriter.coordination.transitions import end, goes_first, grant, join, next_waiter, noted
from tests.unit.safewriter.coordination.bench import job

TURNS = {"Ingestion": 24, "Mutation": 24, "TTL": 1}


def jobs(ttl: str) -> dict[str, Configuration]:
    """Return the three jobs. `ttl`: the order of TTL and Ingestion."""
    if ttl == "strict":
        return {
            "Ingestion": job("Ingestion", predecessor="TTL", mode=Mode.STRICT, first_run=FirstRun.RUN),
            "Mutation": job("Mutation", predecessor="Ingestion", mode=Mode.STRICT),
            "TTL": job("TTL", predecessor="Mutation", mode=Mode.STRICT),
        }
    edges: dict[str, dict[str, Any]] = {
        "soft": {"edge": Edge.SOFT},
        "lagged": {"edge": Edge.LAGGED, "lag": 24, "first_run": FirstRun.RUN},
    }
    return {
        "Ingestion": job("Ingestion", predecessor="TTL", **edges[ttl]),
        "Mutation": job("Mutation", predecessor="Ingestion"),
        "TTL": job("TTL", predecessor="Mutation"),
    }


def may_run(record: Record, configuration: Configuration) -> bool:
    check_startable(record, configuration)
    name = configuration.job
    return obstacle(record, name, record.ordered(configuration)) is None


@pytest.mark.parametrize("ttl", ["soft", "lagged"])
@pytest.mark.parametrize("first", list(permutations(TURNS)))
def test_24_hourly_turns_and_a_daily_one_pass_in_mode_completed(ttl: str, first: tuple[str, ...]) -> None:
    """Each job waits for its next turn right after a turn; all initial orders pass."""
    configurations, left, record = jobs(ttl), dict(TURNS), Record("lock")
    for name in first:
        record = join(record, configurations[name], name, 0)
    for _ in range(sum(TURNS.values())):
        free = [
            name
            for name, configuration in configurations.items()
            if left[name] and may_run(record, configuration) and goes_first(record, configuration, name) is None
        ]
        assert len(free) == 1, left
        (name,) = free
        left[name] -= 1
        record = end(grant(record, configurations[name], name, "", 0), End.COMPLETED, 0)
        if left[name]:
            record = join(record, configurations[name], name, 0)
    assert set(left.values()) == {0}


def test_24_hourly_turns_and_a_daily_one_stall_in_the_strict_ring() -> None:
    """In every initial order, and whichever turns fail, after a round no job with work left may run."""
    configurations = jobs("strict")
    start = (dict.fromkeys(TURNS, 0), Record("lock"))
    todo, seen, ends = [start], set(), []
    while todo:
        done, record = todo.pop()
        may = [name for name in TURNS if done[name] < TURNS[name] and may_run(record, configurations[name])]
        if not may:
            ends.append(done)
        for name, how in product(may, (End.COMPLETED, End.FAILED)):
            turn = end(grant(record, configurations[name], "nonce", "", 0), how, 0)
            after = {**done, name: done[name] + (how is End.COMPLETED)}
            if (key := (*after.values(), name, how)) not in seen:
                seen.add(key)
                todo.append((after, turn))
    assert ends == [{"Ingestion": 2, "Mutation": 2, "TTL": 1}]


@pytest.mark.parametrize("down", [(), ("Mutation", "TTL"), ("TTL",)])
@pytest.mark.parametrize("is_ring", [True, False])
def test_three_streams_complete_a_backlog_of_five_batches_in_order(down: tuple[str, ...], *, is_ring: bool) -> None:
    """All have their five turns, each job never more than its predecessor, also if some come when the others wait."""
    before = {"Ingestion": "TTL" if is_ring else None, "Mutation": "Ingestion", "TTL": "Mutation"}
    first = {"first_run": FirstRun.RUN} if is_ring else {}
    streams = {
        name: job(name, predecessor=one, **(first if name == "Ingestion" else {})) for name, one in before.items()
    }
    record, had = Record("lock"), dict.fromkeys(streams, 0)
    for stream in streams.values():  # a job that the record has never seen begins with the turns of one completion
        record = noted(record, stream, 0)
    for asking in ([name for name in streams if name not in down], streams):
        while True:
            for name in asking:
                if had[name] < 5 and all(waiter.job != name for waiter in record.queue):
                    record = join(record, streams[name], f"{name}-{had[name]}", 0)
            following = next_waiter(record)
            if following is None:
                break
            record = end(grant(record, streams[following.job], following.nonce, "", 0), End.COMPLETED, 0)
            had[following.job] += 1
            assert had["Ingestion"] >= had["Mutation"] >= had["TTL"]
            assert not is_ring or had["Ingestion"] <= had["TTL"] + 1
    assert had == dict.fromkeys(streams, 5)
