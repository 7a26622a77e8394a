"""Parts of a long write, on real tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from safewriter import FingerprintError, SafeWriter, StepError, TooLateError, UsageError, days, parts
from safewriter.deadline import epoch_ms
from safewriter.record.journal import Journal
from tests.integration.safewriter.ice_rows import append
from tests.support.attempts import next_attempt

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from pyspark.sql import SparkSession

    from safewriter import Part
    from tests.support.ice import Ice
    from tests.support.lake import Lake

pytestmark = pytest.mark.spark

WEEK = days("2025-02-26", "2025-03-04")


def write(spark: SparkSession, part: Part[date]) -> None:
    with part as sw:
        spark.range(part.value.day, part.value.day + 1, 1, 1).write.format("delta").mode("append").save(sw.table)
        sw.success()


def test_each_part_is_a_block_with_the_name_of_its_value(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks run in order; another attempt finds nothing to do."""
    for part in parts(spark, lake.table, WEEK):
        write(spark, part)
    assert sorted(str(document.step) for document in lake.documents()) == [str(day) for day in WEEK]
    assert (lake.rows(), lake.operations().count("WRITE")) == (7, 7)
    next_attempt(monkeypatch)
    assert [*parts(spark, lake.table, WEEK)] == []


def test_an_attempt_goes_on_at_the_part_that_is_not_committed(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes the failed part, and those after it."""
    with pytest.raises(ZeroDivisionError):
        for part in parts(spark, lake.table, WEEK):
            if part.value.day == 1:
                with part:
                    _ = 1 / 0
            write(spark, part)
    assert lake.rows() == 3
    next_attempt(monkeypatch)
    left = []
    for part in parts(spark, lake.table, WEEK):
        write(spark, part)
        left.append(part.name)
    assert left == ["2025-03-01", "2025-03-02", "2025-03-03", "2025-03-04"]
    assert lake.rows() == 7


def test_no_part_begins_that_would_meet_the_deadline(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The estimate is the median of the last parts' times; the first part always starts, and counts only alone. The
    journal says how many parts are left, since the script may swallow the error.
    """
    monkeypatch.setenv("SOAL_JOURNAL", str(tmp_path / "journal"))
    clock = [0.0]
    monkeypatch.setattr("safewriter.backfill.monotonic", lambda: clock[0])
    monkeypatch.setenv("SOAL_DEADLINE_EPOCH_MS", str(epoch_ms() + 1_000_000))
    names = []

    def go_on() -> None:
        for part in parts(spark, lake.table, WEEK):
            names.append(part.name)
            write(spark, part)
            clock[0] += [500, 5, 2000][len(names) - 1]

    with Journal(tmp_path / "journal") as journal:
        with pytest.raises(TooLateError, match="part '2025-03-01' is not begun: it takes about 1203 s"):
            go_on()
        (late,) = [entry.fields for entry in journal.entries() if entry.event == "too_late"]
    assert (late["part"], late["partsLeft"]) == ("2025-03-01", 4)
    assert (names, lake.rows()) == (["2025-02-26", "2025-02-27", "2025-02-28"], 3)


def test_an_attempt_knows_the_pace_of_the_one_before(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own first part takes so long that no other would fit; the documents tell that others are quick."""
    monkeypatch.setenv("SOAL_DEADLINE_EPOCH_MS", str(epoch_ms() + 1_000_000))
    clock = [0.0]
    monkeypatch.setattr("safewriter.backfill.monotonic", lambda: clock[0])

    def go_on(until: int) -> None:
        for part in parts(spark, lake.table, WEEK[:until]):
            write(spark, part)
            clock[0] += 2000

    with pytest.raises(TooLateError):
        go_on(3)
    monkeypatch.setattr("safewriter.backfill.monotonic", lambda: 0.0)
    next_attempt(monkeypatch)
    go_on(3)
    assert lake.rows() == 3
    monkeypatch.setattr("safewriter.backfill.monotonic", lambda: clock[0])
    next_attempt(monkeypatch)
    go_on(5)
    assert lake.rows() == 5


def test_two_parts_of_one_name_are_refused(spark: SparkSession, lake: Lake) -> None:
    """The error comes before anything is written: the second would be skipped."""
    with pytest.raises(UsageError, match="two parts have the name '2025-03'"):
        next(parts(spark, lake.table, WEEK[3:], name=lambda day: f"{day:%Y-%m}"))
    assert lake.version() == -1


class Source:
    """A value whose text contains its address in memory."""


@pytest.mark.parametrize(
    ("of", "name"),
    [([Source()], str), (WEEK, lambda day: day.day), (WEEK, lambda _: "")],
    ids=["no text", "int", "empty"],
)
def test_a_name_that_is_another_one_on_the_next_attempt_is_refused(
    spark: SparkSession, lake: Lake, of: Any, name: Any
) -> None:
    """Each attempt would write everything again; and a step that is no text could not be recorded."""
    with pytest.raises(UsageError, match="names no part: give name="):
        next(parts(spark, lake.table, of, name=name))
    with pytest.raises(UsageError, match="step=5 is no text"):
        SafeWriter(spark, lake.table, step=5)  # type: ignore[arg-type]
    assert lake.version() == -1


def test_the_same_parts_a_second_time_in_one_attempt_are_refused(spark: SparkSession, lake: Lake) -> None:
    """They would be skipped, and their rows lost without an error."""
    for part in parts(spark, lake.table, WEEK[:1]):
        write(spark, part)
    (again,) = parts(spark, lake.table, WEEK[:1])
    with pytest.raises(StepError), again:
        pass


def test_a_part_of_another_job_is_not_skipped(spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that is committed under the token with other arguments is an error."""
    write(spark, next(parts(spark, lake.table, WEEK)))
    next_attempt(monkeypatch)
    monkeypatch.setenv("SOAL_JOB_FINGERPRINT", "another")
    with pytest.raises(FingerprintError, match=r"part '2025-02-26' of .* with another script, other arguments"):
        next(parts(spark, lake.table, WEEK))


def test_a_part_that_covers_other_rows_by_the_same_name_is_not_skipped(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two parts of ten ids are committed; two of twenty, with the same names, raise before either begins."""

    def cut(size: int) -> list[list[int]]:
        return [[*range(size * number, size * (number + 1))] for number in range(2)]

    def write_all(size: int) -> None:
        for part in parts(spark, lake.table, cut(size), name=lambda ids: f"part {ids[0] // len(ids)}"):
            with part as sw:
                ids = spark.createDataFrame([(one,) for one in part.value], "id long").coalesce(1)
                ids.write.format("delta").mode("append").save(sw.table)
                sw.success()

    write_all(10)
    next_attempt(monkeypatch)
    with pytest.raises(FingerprintError, match=r"part 'part 0' of .* for another value"):
        write_all(20)
    assert lake.rows() == 20
    next_attempt(monkeypatch)
    write_all(10)
    assert lake.rows() == 20


def test_a_value_that_no_retry_could_compare_is_refused(spark: SparkSession, lake: Lake) -> None:
    """The text of a frame has its columns, but not its rows."""
    with pytest.raises(UsageError, match=r"part 'one': a DataFrame has no text .* make frames of them inside the loop"):
        next(parts(spark, lake.table, [spark.range(3)], name=lambda _: "one"))
    assert lake.version() == -1


def test_an_iceberg_table_is_written_in_parts(spark: SparkSession, ice: Ice, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is given by name."""
    for part in parts(spark, ice.name, WEEK[:2], format="iceberg"):
        with part as sw:
            append(spark, sw.table, part.value.day, part.value.day + 1)
            sw.success()
    next_attempt(monkeypatch)
    assert [part.name for part in parts(spark, ice.name, WEEK[:3], format="iceberg")] == ["2025-02-28"]
    assert ice.rows() == 5 + 2


@pytest.mark.parametrize(
    ("first", "last", "found"),
    [("2024-02-28", "2024-03-01", 3), ("2025-01-01", "2025-12-31", 365), ("2025-01-02", "2025-01-01", 0)],
)
def test_days_are_all_from_the_first_to_the_last(first: str, last: str, found: Any) -> None:
    """Both included; none if the last is before the first."""
    assert len(days(first, last)) == found
