"""The benchmarks, once each: the peer's side runs as well as SoAL's."""

from __future__ import annotations

import itertools
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from handler.spark.machine import Machine
from scripts.provision.__main__ import main as setup
from tests.lab.__main__ import app
from tests.lab.bench import containers
from tests.lab.bench.lock_services import NAMES
from tests.lab.bench.phases import PHASES
from tests.lab.bench.settle_delta import measure_delta
from tests.lab.bench.settle_iceberg import measure_iceberg

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.matrix
def test_both_ways_to_start_cold_are_timed() -> None:
    """Tests do not judge the figures; they only check that there are some."""
    done = CliRunner().invoke(app, ["bench", "start", "--rounds", "1", "--json"])
    assert done.exit_code == 0, done.output
    cost = json.loads(done.stdout)
    assert cost["peer_ms"] > 0
    assert cost["ratio"] == pytest.approx(cost["soal_ms"] / cost["peer_ms"])
    assert cost["cpu_ratio"] == pytest.approx(cost["soal_cpu_s"] / cost["peer_cpu_s"])


@pytest.mark.spark
@pytest.mark.slow
def test_a_cold_run_is_traced_phase_by_phase(tmp_path: Path) -> None:
    """Every boundary occurs in the run's records, the phases have no gap, and they end with the answer."""
    done = CliRunner().invoke(app, ["bench", "start", "--trace", str(tmp_path / "made"), "--json"])
    assert done.exit_code == 0, done.output
    run = json.loads(done.stdout)
    phases = run["phases"]
    assert [one["name"] for one in phases] == [name for name, _, _ in PHASES]
    assert phases[0]["began_ms"] == 0
    assert all(one["ended_ms"] == after["began_ms"] for one, after in itertools.pairwise(phases))
    assert phases[-1]["ended_ms"] == pytest.approx(run["total_ms"], abs=100)
    assert sum(one["requests"] for one in phases) == len(run["requests"]) > 0
    assert set(run["cpu_s"]) == {"handler", "java", "python"}
    lines = [json.loads(line) for line in (tmp_path / "made" / "cold.jsonl").read_text().splitlines()]
    assert [one["kind"] for one in lines] == ["run", *["phase"] * len(phases), *["request"] * len(run["requests"])]
    assert (tmp_path / "made" / "cold.svg").read_text().rstrip().endswith("</svg>")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.matrix
def test_the_variants_are_timed_side_by_side() -> None:
    """Each of them ran the job."""
    assert setup(["--variant", "full"]) == 0
    done = CliRunner().invoke(app, ["bench", "variants", "--rounds", "1", "--json"])
    assert done.exit_code == 0, done.output
    cost = json.loads(done.stdout)
    assert cost["ratio"] == pytest.approx(cost["full_ms"] / cost["slim_ms"])
    assert cost["cpu_ratio"] == pytest.approx(cost["full_cpu_s"] / cost["slim_cpu_s"])


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.matrix
def test_warm_jobs_are_timed_beside_a_cold_one() -> None:
    """Each of them was warm."""
    done = CliRunner().invoke(app, ["bench", "warm", "--jobs", "3", "--rounds", "1", "--json"])
    assert done.exit_code == 0, done.output
    cost = json.loads(done.stdout)
    assert cost["jobs"] == 3
    assert 0 < cost["warm_ms"] < cost["cold_ms"]
    assert cost["ratio"] == pytest.approx(cost["warm_ms"] / cost["peer_ms"])


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("catalog", ["sqlite", "rest"])
def test_appends_of_several_processes_to_one_iceberg_table_are_timed(catalog: str) -> None:
    """Guarded appends are all in the table; missing plain ones have reported an error."""
    guarded, plain = _of_two_writers("iceberg", "--catalog", catalog)
    assert guarded["catalog"] == catalog
    assert plain["lost"] == 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.matrix
def test_copies_of_one_snapshot_are_timed_and_each_leaves_its_row(criu: str) -> None:
    """Two of them run at once; the benchmark fails if they share an id, or lose a row."""
    done = CliRunner().invoke(app, ["bench", "restored", "--criu", criu, "--rounds", "1", "--warm-ups", "2", "--json"])
    assert done.exit_code == 0, done.output
    cold, alone, together = json.loads(done.stdout)["rows"]
    assert [row["jobs"] for row in (cold, alone, together)] == [1, 1, 2]
    assert alone["ratio"] == pytest.approx(cold["commit_ms"] / alone["commit_ms"])


@pytest.fixture
def criu() -> str:
    """The CRIU that CRIU names."""
    path = os.environ.get("CRIU", "criu")
    if problem := containers.problem(path):
        pytest.skip(f"{problem}; set CRIU to a built CRIU 4.2, as root, with runc and iproute2")
    return path


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.matrix
def test_appends_of_several_processes_to_one_delta_table_are_timed() -> None:
    """Without SafeWriter the conditional log store keeps all appends, too; Delta's default one may not."""
    guarded, plain, default = _of_two_writers("delta")
    assert plain["landed"] == guarded["landed"]
    assert (default["failed"], default["landed"] + default["lost"]) == (0, default["sent"])


def _of_two_writers(lake_format: str, *options: str) -> list[dict[str, Any]]:
    """Return the rows of two writers, the guarded one's first."""
    line = ["bench", "scale", "--only", "writers", "--format", lake_format, "--writers", "2", "--rounds", "2"]
    done = CliRunner().invoke(app, [*line, *options, "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["writers"]
    assert all(row["sent"] == 4 and row["round_s"] > 0 for row in rows)
    rows.sort(key=lambda row: ("guarded", "plain", "default").index(row["way"]))
    assert (rows[0]["failed"], rows[0]["landed"], rows[0]["lost"]) == (0, 4, 0)
    return list(rows)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.matrix
def test_appends_of_many_rows_are_timed_in_each_size_of_memory() -> None:
    """Both ways succeed on either format, with the heap that the handler gives to a function of that size."""
    line = ["bench", "scale", "--only", "rows", "--rows", "10", "--rows", "100", "--memory-mb", "1769", "--rounds", "1"]
    done = CliRunner().invoke(app, [*line, "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["rows"]
    assert [(row["rows"], row["format"]) for row in rows] == list(itertools.product((10, 100), ("delta", "iceberg")))
    for row in rows:
        assert (row["limit"], row["heap_mb"], row["pairs"]) == ("unlimited", Machine(1769, 1).heap_mb, 1)
        assert (row["plain_end"], row["guarded_end"]) == ("done", "done")
        assert row["added_s"] == pytest.approx(row["guarded_s"] - row["plain_s"])
        assert row["guarded_jvm_mb"] > 0


def test_a_verdict_on_a_dead_write_is_timed_on_either_format() -> None:
    """Each round ends with the write rolled back."""
    done = CliRunner().invoke(app, ["bench", "settle", "--rounds", "2", "--small", "--json"])
    assert done.exit_code == 0, done.output
    cost = json.loads(done.stdout)
    assert [row["outcome"] for row in cost["delta"]] == ["never landed", "undone"]
    (iceberg,) = cost["iceberg"]
    for row in (*cost["delta"], iceberg):
        assert 0 < row["verdict_ms"] <= row["done_ms"]
        assert 0 < row["ready_cpu_ms"] < row["fresh_cpu_ms"]
        assert row["done_ratio"] == 1
        assert 0 < row["listings"] < row["requests"]
    assert iceberg["look_ms"] > 0


def test_a_verdict_on_delta_costs_as_many_requests_on_a_large_table() -> None:
    """At most two more short pages, on a server whose lists are not ours: behind the log, and the files of others."""
    rows = measure_delta(1, versions=(10, 3_000), files=(100, 3_000))
    found = {(row.outcome, row.files): row for row in rows}
    for outcome in ("never landed", "undone"):
        large, small = found[outcome, 3_000], found[outcome, 100]
        assert large.requests <= small.requests + 2
        assert large.received_bytes <= small.received_bytes + 20_000


def test_a_verdict_on_iceberg_costs_as_much_on_a_table_of_many_snapshots() -> None:
    """The same requests, with one read of its metadata, and no more memory than the smallest function has left."""
    few, *rows = measure_iceberg(1, (1, 1_000, 10_000))
    assert [row.snapshots for row in rows] == [1_000, 10_000]
    for row in rows:
        assert (row.requests, row.listings) == (few.requests, few.listings)
        assert row.peak_mb < 256


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.matrix
def test_the_guard_adds_at_most_three_requests_that_follow_one_another() -> None:
    """On Iceberg none: it saves as many as it adds."""
    line = ["bench", "guard", "--rounds", "1", "--rows", "100", "--latency-ms", "0", "--json"]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.output
    cost = json.loads(done.stdout)
    assert [row["format"] for row in cost["figures"]] == ["delta", "iceberg"]
    assert cost["sequential_requests"]["delta"] <= 3
    assert cost["sequential_requests"]["iceberg"] <= 1


def test_turns_at_a_lock_are_timed_on_each_service_that_is_here() -> None:
    """An unavailable service is skipped with a reason; an uncontended turn on S3 costs at most four requests."""
    line = ["bench", "locks", "--rounds", "1", "--turns", "2", "--contenders", "1", "--contenders", "2"]
    done = CliRunner().invoke(app, [*line, "--poll-s", "0.01", "--json"])
    assert done.exit_code == 0, done.output
    cost = json.loads(done.stdout)
    assert len(cost["rows"]) == 2 * (len(NAMES) - len(cost["skipped"]))
    requests = {
        row["service"]: row["requests_per_turn"]
        for row in cost["rows"]
        if row["contenders"] == 1 and row["service"].startswith("s3")
    }
    assert len(requests) == 2
    assert all(0 < count <= 4 for count in requests.values())


@pytest.mark.spark
@pytest.mark.matrix
def test_builds_of_snapshots_are_measured_beside_the_bare_loop() -> None:
    """A build's figures include all its processes, but not the S3."""
    line = ["bench", "snapshot", "--rows", "1000", "--shards", "1", "--shards", "3", "--rounds", "1", "--reads", "100"]
    done = CliRunner().invoke(app, [*line, "--json"])
    assert done.exit_code == 0, done.output
    cost = json.loads(done.stdout)
    assert [(row["rows"], row["shards"]) for row in cost["builds"]] == [(1000, 1), (1000, 3)]
    for row in cost["builds"]:
        assert row["cpu_s"] == pytest.approx(row["cpu_driver_s"] + row["cpu_jvm_s"] + row["cpu_workers_s"])
        assert row["cpu_ratio"] == pytest.approx(row["bare_cpu_s"] / row["cpu_s"])
        assert row["worker_mb"] <= row["workers_mb"]
    assert [row["shards"] for row in cost["reads"]] == [1, 3]
    assert all(0 < row["get_us"] <= row["get_us_p99"] for row in cost["reads"])
