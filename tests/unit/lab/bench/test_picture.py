from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.bench.picture import picture
from tests.lab.bench.record import append, read

if TYPE_CHECKING:
    from pathlib import Path


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
