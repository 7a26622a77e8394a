"""A settler whose catalog of the table's name holds an older copy of it decides nothing, and deletes nothing."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from safewriter.errors import UnknownOutcomeError
from safewriter.record.document import Status
from safewriter.tables.iceberg.table import name_of
from tests.support.iceberg_writer import open_catalog
from tests.unit.safewriter.tables.iceberg.bench import NAME

if TYPE_CHECKING:
    from pathlib import Path

    from safewriter.record.checkpoints import HeldCheckpoint
    from tests.unit.safewriter.tables.iceberg.bench import Bench


def move(bench: Bench, folder: Path) -> None:
    """Register the table in a new catalog, where jobs write it from now on; settlers still know the old one."""
    bench.properties = {**bench.properties, "uri": f"jdbc:sqlite:{folder}/new.db"}
    new = open_catalog("lite", bench.properties)
    new.register_table(NAME.identifier, bench.load().metadata_location)
    bench.catalog = new


def files_of(bench: Bench, held: HeldCheckpoint) -> list[str]:
    return [one.key for one in bench.lake.list("") if name_of(held.document.attempt) in one.key]


def test_a_table_that_was_moved_to_another_catalog_is_not_settled_in_the_old_one(bench: Bench, tmp_path: Path) -> None:
    """The publication of the dead attempt is in the new one, and the error says what to set."""
    move(bench, tmp_path)
    bench.add("main", "foreign-1")
    held = bench.claim()
    bench.publish(held)
    before = files_of(bench, held)
    bench.grace_passes()

    with pytest.raises(UnknownOutcomeError, match="let the settler's configuration name the catalog of the job"):
        bench.settle()

    assert bench.document.status is Status.UNKNOWN
    assert files_of(bench, held) == before


def test_an_older_copy_leads_no_clean_up_to_files(bench: Bench, tmp_path: Path) -> None:
    """Also to those of an attempt before the copy was made, since a later one has seen the table."""
    first = bench.claim()
    bench.publish(first, f"{name_of(first.document.attempt)}/lost")
    bench.settle(nothing_sent=True, cleans_later=True)
    move(bench, tmp_path)
    bench.add("main", "foreign-1")
    second = bench.claim()
    bench.publish(second)
    bench.settle(nothing_sent=True, cleans_later=True)
    bench.grace_passes()

    assert bench.recovery().clean(bench.write.key) == 0
    assert files_of(bench, first)
    assert files_of(bench, second)


@pytest.mark.parametrize(("later_ms", "decided"), [(60_000, True), (60_001, False)])
def test_a_table_without_sequence_numbers_is_known_by_its_times(bench: Bench, later_ms: int, *, decided: bool) -> None:
    """Iceberg lets the clocks of a table's writers differ by a minute."""
    held = bench.claim()
    seen_ms = bench.load().metadata.last_updated_ms + later_ms
    attempt = dataclasses.replace(held.document.attempt, sequence=0, modified_ms=seen_ms)
    assert bench.checkpoints.replace(held, dataclasses.replace(held.document, attempts=(attempt,)))

    with nullcontext() if decided else pytest.raises(UnknownOutcomeError, match="an older state"):
        bench.settle()

    assert bench.document.status is (Status.ROLLED_BACK if decided else Status.UNKNOWN)
