"""The arithmetic of the benchmark of locks, and the services that are not here."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from soal.console.problem import Problem
from tests.lab.__main__ import app
from tests.lab.bench import locks
from tests.lab.bench.lock_services import KAZOO, Count, LockService, NotHereError, Servers

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


class Idle:
    """A contender that waits for nobody."""

    def lock(self) -> None: ...
    def unlock(self) -> None: ...


@contextmanager
def counting() -> Iterator[Count]:
    yield Count(8)


def opened(_: Servers, name: str) -> LockService:
    if name == "zookeeper":
        raise NotHereError("no server")
    return LockService(lambda _lock, _number: Idle(), counting)


def test_each_service_meets_each_number_of_contenders(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not here is left out, and the reason is told; the others are measured all the same."""
    monkeypatch.setattr(Servers, "open", opened)
    cost = locks.measure(2, 4, (1, 2), ("memory", "zookeeper", KAZOO))
    assert [(row.service, row.contenders, row.turns, row.requests_per_turn) for row in cost.rows] == [
        ("memory", 1, 8, 2.0),
        (KAZOO, 1, 8, 2.0),
        ("memory", 2, 8, 2.0),
        (KAZOO, 2, 8, 2.0),
    ]
    assert cost.skipped == ("zookeeper is left out: no server",)
    assert [row.ratio for row in cost.rows if row.service == KAZOO] == [1.0, 1.0]


def test_each_round_is_compared_with_the_same_round() -> None:
    """The machine may slow down between rounds; the ratio is the median of the rounds'."""
    own, peer = (
        [locks._Round(turn_ms, [1.0, 2.0, 9.0], [1.0], None, 3) for turn_ms in times]
        for times in ((10.0, 20.0, 60.0), (5.0, 5.0, 10.0))
    )
    row = locks._row("memory", 2, own, peer)
    assert (row.turn_ms, row.ratio, row.lock_ms, row.lock_ms_max, row.requests_per_turn) == (20.0, 4.0, 2.0, 9.0, None)
    assert locks._row("memory", 2, own, None).ratio is None


def test_a_service_that_nobody_knows() -> None:
    """The answer names those that are known."""
    done = CliRunner().invoke(app, ["bench", "locks", "--service", "redis"])
    assert isinstance(done.exception, Problem)
    assert "dynamodb" in done.exception.todo
