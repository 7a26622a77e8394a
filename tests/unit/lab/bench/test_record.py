from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.bench import record
from tests.lab.bench.record import Record, append, latest, read


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


def test_the_kept_schema_is_that_of_the_code() -> None:
    """`python -m tests.lab.bench.record` writes it."""
    kept = Path(record.__file__).with_name("record.schema.json").read_text(encoding="utf-8")
    assert json.loads(kept) == Record.model_json_schema()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tests.lab.bench.record"],
        cwd=Path(record.__file__).parents[2],
        env={"PYTHONPATH": str(Path(record.__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == kept
