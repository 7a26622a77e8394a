"""The benchmarks' pictures: bars of a full run, and the waterfall of one cold run, each with its source."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.bench.phases import Phase, Request
from tests.lab.bench.picture import picture, waterfall
from tests.lab.bench.record import append, read
from tests.lab.bench.trace import ColdRun, lines_of

if TYPE_CHECKING:
    from pathlib import Path

RUN = ColdRun(
    image="soal",
    total_ms=4_000,
    initialised_ms=300,
    cpu_s={"java": 4.0},
    classes={"archive": 3},
    phases=(Phase("Java starts", "java", 0, 1_000, 0, {}), Phase("the verdict", "python", 1_000, 4_000, 1, {})),
    requests=(Request("PutObject", "lake", "data", 1_500, 1_510),),
)
ABOUT = {"commit": "0123456789ab", "versions": {"pyspark": "4.1.4", "delta-spark": "4.4.0", "moto": "5"}, "cores": 2}


def results(folder: Path, *, without: str = "") -> Path:
    """A full run with round figures."""
    path = folder / "results.jsonl"
    figures = [
        {"format": "delta", "rows": 22_248, "latency_ms": ms, "plain_ms": 100.0, "added_ms": 12.0} for ms in (0, 30)
    ]
    lines: dict[str, dict[str, Any]] = {
        "guard": {"figures": figures},
        "start": {"image": "soal", "job": "append", "peer_ms": 10_000.0, "soal_ms": 3_000.0},
        "warm": {"warm_ms": 900.0},
        "floor": {"rows": [{"way": way, "ms": 700.0} for way in ("spark-submit", "deltalake", "pyiceberg")]},
    }
    for bench, result in lines.items():
        if bench != without:
            append(path, [bench], result)
    append(path, ["start"], {**lines["start"], "image": None, "soal_ms": 4_000.0})
    return path


def test_each_way_has_a_bar_and_the_guard_a_line(tmp_path: Path) -> None:
    """With the figures of the file, and where they are from."""
    drawn = picture(read(results(tmp_path)))
    words = " ".join(re.findall(r">([^<]+)<", drawn))
    for said in ("3.00 s", "4.00 s", "10.00 s", "0.90 s", "0.70 s", "adds 12 ms", "this S3", "with 30 ms more"):
        assert said in words
    assert read(tmp_path / "results.jsonl")[0].commit in words


def test_a_file_that_lacks_a_benchmark_is_named(tmp_path: Path) -> None:
    """Nothing is drawn of half a run."""
    with pytest.raises(LookupError, match="scripts/lab bench warm"):
        picture(read(results(tmp_path, without="warm")))


def test_a_cold_run_has_a_bar_for_each_phase() -> None:
    """Its time, and where the run is from; the requests below."""
    words = " ".join(re.findall(r">([^<]+)<", waterfall(RUN, ABOUT)))
    for said in ("Java starts", "1,000 ms", "the verdict", "3,000 ms", "1 requests to S3"):
        assert said in words
    assert "in the image, 2 cores, commit 0123456789ab, pyspark 4.1.4, delta-spark 4.4.0." in words


def test_the_lines_of_a_run_say_where_it_is_from() -> None:
    """One for the run, one for each phase and each request."""
    lines = list(lines_of(RUN, ABOUT))
    assert len(lines) == 4
    assert '"commit": "0123456789ab"' in lines[0]
    assert '"kind": "request"' in lines[-1]
