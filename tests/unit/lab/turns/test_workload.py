"""The lab makes the input of its three streams from a seed, and the rows that the table must hold at the end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.lab.turns.workload import JOBS, workload

if TYPE_CHECKING:
    from pathlib import Path


def test_a_seed_makes_the_same_input_again() -> None:
    """Two calls agree, another seed differs."""
    assert workload(3, 4) == workload(3, 4)
    assert workload(3, 4) != workload(4, 4)


def test_some_requests_of_each_round_but_the_last_come_before_their_rows() -> None:
    """Their ids are ingested one round later; no request is for a row that is never ingested."""
    work = workload(1, 3)
    ingested = [{row["id"] for row in file} for file in work.inputs["Ingestion"]]
    early = [
        sum(request["id"] in set().union(*ingested[number + 1 :]) for request in file)
        for number, file in enumerate(work.inputs["Mutation"])
    ]
    assert (early, work.early) == ([2, 2, 0], 4)
    assert {row["id"] for file in work.inputs["Mutation"] for row in file} <= set().union(*ingested)


def test_what_is_expected_is_what_is_ingested_and_not_deleted() -> None:
    """Each request that is for such a row counts once in its mutations."""
    work = workload(1, 3)
    ids = {job: [row["id"] for file in work.inputs[job] for row in file] for job in JOBS}
    assert work.expected.keys() == set(ids["Ingestion"]) - set(ids["TTL"])
    assert all(row.mutations == ids["Mutation"].count(one) for one, row in work.expected.items())


def test_the_files_are_as_old_as_their_numbers(tmp_path: Path) -> None:
    """Spark's file source takes the oldest file first, whatever its name."""
    work = workload(1, 3)
    work.write(tmp_path)
    files = sorted((tmp_path / "TTL").iterdir(), key=lambda path: path.stat().st_mtime)
    assert [path.name for path in files] == ["0000.json", "0001.json", "0002.json"]
    assert [json.loads(line) for line in files[1].read_text().splitlines()] == [*work.inputs["TTL"][1]]
