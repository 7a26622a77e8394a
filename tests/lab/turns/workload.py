"""The input of the three streams, and the expected rows of the table; both reproducible from a seed."""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["INGESTION", "JOBS", "MUTATION", "TTL", "Job", "Row", "Workload", "workload"]

Job = Literal["Ingestion", "Mutation", "TTL"]

JOBS: Final = cast("tuple[Job, ...]", get_args(Job))
INGESTION, MUTATION, TTL = JOBS

_EARLY: Final = 2
"""Requests of a Mutation file, except the last, whose rows Ingestion brings only in the next round."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table. `mutations` shows a request that was applied twice."""

    id: str
    contact: str
    mutations: int = 0


@dataclass(frozen=True, slots=True)
class Workload:
    """The input files of each stream, one for each round, and the expected rows of the table, by id."""

    inputs: dict[Job, tuple[tuple[dict[str, str], ...], ...]]
    expected: dict[str, Row]
    early: int
    """The number of Mutation requests that come before their rows."""

    @property
    def rounds(self) -> int:
        """The number of each stream's files."""
        return len(self.inputs["Ingestion"])

    def write(self, folder: Path) -> None:
        """Write the files, one folder for each stream. The file source takes the oldest first."""
        for job, files in self.inputs.items():
            place = folder / job
            place.mkdir(parents=True)
            for number, rows in enumerate(files):
                path = place / f"{number:04}.json"
                path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
                os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))


def workload(seed: int, rounds: int, rows: int = 30) -> Workload:
    """Make the input of `rounds` rounds, and apply it in the declared order: Ingestion, Mutation, TTL."""
    chance = random.Random(seed)  # noqa: S311 - the same numbers again, not secret ones
    inputs: dict[Job, list[tuple[dict[str, str], ...]]] = {job: [] for job in JOBS}
    table: dict[str, Row] = {}
    waiting: dict[str, str] = {}
    early = 0
    for number in range(rounds):
        new = [f"{number:04}-{row:04}" for row in range(rows)]
        inputs["Ingestion"].append(tuple({"id": one, "contact": f"lead of {one}"} for one in new))
        table.update({one: Row(one, f"lead of {one}") for one in new})
        to_come = [f"{number + 1:04}-{row:04}" for row in range(_EARLY)] if number < rounds - 1 else []
        asked = chance.sample([one for one in table if one not in waiting], rows // 3)
        requests = {one: f"contact {number} of {one}" for one in (*asked, *to_come)}
        inputs["Mutation"].append(tuple({"id": one, "contact": contact} for one, contact in requests.items()))
        early += len(to_come)
        for one, contact in {**waiting, **requests}.items():
            if one in table:
                table[one] = Row(one, contact, table[one].mutations + 1)
        waiting = {one: requests[one] for one in to_come}
        gone = chance.sample(sorted(table), rows // 5)
        inputs["TTL"].append(tuple({"id": one} for one in gone))
        for one in gone:
            del table[one]
    return Workload({job: tuple(files) for job, files in inputs.items()}, table, early)
