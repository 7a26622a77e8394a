"""The benchmarks keep each result as a line with commit and machine, and find the newest one that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab.bench.record import append, latest, read

if TYPE_CHECKING:
    from pathlib import Path


def test_a_result_is_a_line_that_says_where_it_is_from(tmp_path: Path) -> None:
    """The words of the command, the commit, the versions, the machine; the first line makes file and folder."""
    results = tmp_path / "new" / "results.jsonl"
    assert read(results) == ()
    append(results, ["guard", "--rounds", "3"], {"added_ms": 1.5})
    append(results, ["image"], [1, 2])
    first, second = read(results)
    assert (first.bench, first.command, first.result) == ("guard", ["guard", "--rounds", "3"], {"added_ms": 1.5})
    assert (second.bench, second.result) == ("image", [1, 2])
    assert first.commit
    assert first.versions["pyspark"]
    assert first.cores > 0
    assert first.memory_mb > 0


def test_the_newest_result_that_fits_counts(tmp_path: Path) -> None:
    """An older one, or that of another benchmark, does not."""
    results = tmp_path / "results.jsonl"
    for number in (1, 2, 3):
        append(results, ["guard"], {"number": number})
    append(results, ["warm"], {"number": 4})
    records = read(results)
    assert latest(records, "guard").result == {"number": 3}
    assert latest(records, "guard", lambda found: found["number"] < 3).result == {"number": 2}
    with pytest.raises(LookupError, match="no such run of scripts/lab bench settle"):
        latest(records, "settle")
