"""The report on a lock."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import soal.locks.report
from handler.json_document import schema_text
from safewriter.coordination.backend import Stored
from safewriter.coordination.configuration import Edge
from safewriter.coordination.record import Job, Record, Waiter
from soal.locks.report import LockReport, why_it_waits
from tests.unit.soal.locks.examples import STORED

FIRST, SECOND = Waiter("A", "a", 1, 0, 0.5), Waiter("B", "b", 2, 0, 0.5)


def test_the_published_schema_is_the_models() -> None:
    """If this fails: `python -m soal.locks.report > soal/locks/report.schema.json`."""
    published = Path(soal.locks.report.__file__).with_name("report.schema.json")
    assert published.read_text(encoding="utf-8") == schema_text(LockReport)


@pytest.mark.parametrize("stored", [STORED, Stored(Record("L"), 1)], ids=["full", "empty"])
def test_a_report_is_valid_under_its_schema(stored: Stored) -> None:
    """A report with an example of everything, and that of an unused lock, are valid."""
    Draft202012Validator(json.loads(schema_text(LockReport))).validate(LockReport.of_lock(stored, 10).document())


def test_queue_and_turns_are_in_order() -> None:
    """The lowest ticket goes first, turns are sorted from the newest, and their number is limited."""
    report = LockReport.of_lock(STORED, 10)
    assert [one.ticket for one in report.waiters] == [3, 4]
    assert [one.token for one in report.turns] == [2, 1]
    assert [one.token for one in LockReport.of_lock(STORED, 1).turns] == [2]


def test_a_completion_has_its_time_while_the_record_keeps_the_turn() -> None:
    """A completion has a time as long as the record keeps its turn; an expired turn is no completion."""
    times = {one.job: one.completed_at for one in LockReport.of_lock(STORED, 1).jobs}
    assert [name for name, at in times.items() if at is not None] == ["Ingestion"]


@pytest.mark.parametrize(
    ("jobs", "held", "why"),
    [
        ({}, True, "Ingestion holds it; A goes first"),
        ({}, False, "A goes first"),
        ({"A": Job("C")}, False, "it is next, and has not asked again yet"),
        ({"B": Job("A")}, False, "B waits for the next turn that A completes"),
        ({"B": Job("A")}, True, "Ingestion holds it; B waits for the next turn that A completes"),
        ({"B": Job("A", edge=Edge.SOFT)}, False, "A waits for its turn, and goes first"),
    ],
    ids=["held", "ticket", "next", "order", "both", "soft"],
)
def test_each_waiter_has_a_reason(jobs: dict[str, Job], held: bool, why: str) -> None:  # noqa: FBT001 - a row's field
    """The reason is the holder, the order, an earlier ticket that may run, or that the waiter is next."""
    assert STORED.record.holder is not None
    holder = replace(STORED.record.holder, job="Ingestion") if held else None
    record = Record("L", holder=holder, queue=(FIRST, SECOND), jobs=jobs)
    assert why_it_waits(record, SECOND) == why
