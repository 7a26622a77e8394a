"""Two who settle the same dead write at once, request by request, and somebody who appends to main meanwhile."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from safewriter.recovery import Cause
from safewriter.state import Status
from tests.unit.safewriter.tables.iceberg.bench import Bench
from tests.unit.safewriter.tables.iceberg.turns import Settler, table_store

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.matrix]

SCENES = [
    pytest.param(Cause.KILLED, Cause.SWEEPER, "append", id="the supervisor and the sweeper, an append"),
    pytest.param(Cause.KILLED, Cause.SWEEPER, "overwrite", id="the supervisor and the sweeper, an overwrite"),
    pytest.param(Cause.EXCEPTION, Cause.SWEEPER, "append", id="the guard and the sweeper, an append"),
]
SEEDS = 40
REQUESTS_MAX = 100


@pytest.fixture
def dead(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Bench]:
    """What a dead attempt has staged, and a main that has moved since."""

    def make(operation: str) -> Bench:
        bench = Bench(tmp_path_factory.mktemp("bench"), monkeypatch)
        monkeypatch.setattr("safewriter.objects.s3.table_store", table_store(bench))
        bench.stage(bench.claim(), operation=operation)
        bench.add("main", "foreign-1")
        return bench

    return make


def judge(bench: Bench, cause: Cause, operation: str, foreign: int) -> None:
    """One verdict, which is true: in main once, or not at all; everybody else's rows are there; nothing is left."""
    status = bench.document.status
    if operation == "overwrite":
        assert status is Status.ROLLED_BACK, "a conflict"
    elif cause is not Cause.EXCEPTION:
        assert status is Status.COMMITTED
    bench.grace_passes()
    bench.recovery().clean(bench.write.key)
    names = [f"foreign-{number}" for number in range(foreign)] + ["ours"] * (status is Status.COMMITTED)
    assert bench.data() == set(names)
    assert len(bench.main()) == len(names)
    assert bench.rows() == 10 * len(names)
    assert files(bench) == sorted(names)
    assert set(bench.load().metadata.refs) == {"main"}
    assert bench.document.attempt.cleaned
    bench.check()


def files(bench: Bench) -> list[str]:
    """The data files that main shows, each as often as it does."""
    table = bench.load()
    entries = [
        entry.data_file.file_path
        for manifest in bench.main()[-1].manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    ]
    return sorted(path.rsplit("/", 1)[-1].removesuffix(".parquet") for path in entries)


@pytest.mark.parametrize(("one", "other", "operation"), SCENES)
def test_whoever_stops_anywhere_is_overtaken_and_agrees(
    dead: Callable[[str], Bench], one: Cause, other: Cause, operation: str
) -> None:
    """The first stops before one of its requests, the second settles, the first goes on."""
    for requests in range(REQUESTS_MAX):
        bench = dead(operation)
        first = Settler(bench, one)
        first.step(requests)
        had_ended = first.ended
        Settler(bench, other).finish()
        first.finish()
        judge(bench, one, operation, foreign=2)
        if had_ended:
            break
    assert 10 < requests < REQUESTS_MAX - 1


@pytest.mark.parametrize("seed", range(SEEDS), ids="seed-{}".format)
@pytest.mark.parametrize(("one", "other", "operation"), SCENES)
def test_two_settlers_agree_in_any_order_of_their_requests(
    dead: Callable[[str], Bench], one: Cause, other: Cause, operation: str, seed: int
) -> None:
    """Whoever appends meanwhile keeps their rows: both apply it again, and one of them publishes it."""
    chance = random.Random(seed)  # noqa: S311 - the same order every time
    bench = dead(operation)
    settlers, foreign = (Settler(bench, one), Settler(bench, other)), 2
    while not all(settler.ended for settler in settlers):
        if foreign < 5 and chance.random() < 0.05:
            bench.add("main", f"foreign-{foreign}")
            foreign += 1
        chance.choice(settlers).step(chance.randint(1, 4))
    for settler in settlers:
        settler.finish()
    judge(bench, one, operation, foreign)
