"""`soal orphans --delete` deletes free files in batches, and spares open writes and newly named files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import soal.orphans.survey
from safewriter.objects import StoreError, Upload
from soal.orphans.survey import delete
from tests.unit.safewriter.delta_log import File
from tests.unit.soal.orphans.bench import Bench, data_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from soal.orphans.report import OrphanReport


def interrupted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]
) -> tuple[OrphanReport, str | None]:
    """Delete one file at a time, and call `happens` after the first one."""
    monkeypatch.setattr(soal.orphans.survey, "BATCH", 1)
    once = [happens]

    def done(_: int) -> None:
        if once:
            once.pop()()

    return delete(bench.lake, *bench.survey().look(), done)


def test_what_is_free_is_deleted_and_what_is_held_stays() -> None:
    """The table's files, the log, young files and files that are not the table's stay."""
    bench = Bench()
    before = set(bench.lake.contents())
    bench.put(*(data_key() for _ in range(20)), "_SUCCESS")
    bench.lake.begin_upload(Upload(data_key(), "1"))
    bench.ages()
    job = bench.world.job(deadline_ms=None).begin()
    report = bench.delete()
    assert len([one for one in report.orphans if one.deleted]) == 20
    assert set(bench.lake.contents()) == {*before, "_SUCCESS", job.leftover, *(file.key for file in job.files)}
    assert [one.aborted for one in report.uploads] == [True]
    assert [upload.key.startswith("sw-") for upload in bench.lake.uploads("")] == [True]
    assert (report.dry_run, report.has_failed, bench.seen) == (False, False, [20])


def test_nothing_of_an_open_write_is_touched_however_old() -> None:
    """Files and uploads of an open write stay, however old."""
    bench = Bench()
    bench.world.job(deadline_ms=None).begin()
    bench.ages()
    before = bench.lake.contents()
    report = bench.delete()
    assert (len(report.orphans), len(report.uploads)) == (3, 1)
    assert not any(one.deleted for one in report.orphans)
    assert bench.lake.contents() == before
    assert len(list(bench.lake.uploads(""))) == 1


def test_a_file_that_a_commit_has_come_to_refer_to_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file to which a new commit refers stays: the log is read before each batch."""
    bench = Bench()
    first, second = sorted((data_key(), data_key()))
    bench.put(first, second)
    bench.ages()
    report, problem = interrupted(bench, monkeypatch, lambda: bench.world.log.append(File(second)))
    assert problem is None
    assert [(one.deleted, bool(one.held)) for one in report.orphans] == [(True, False), (False, True)]
    assert second in bench.lake.contents()
    assert report.version == 2


@pytest.mark.parametrize("how", ["dropped", "recreated", "gap"])
def test_a_table_that_is_no_longer_the_one_that_was_read_is_left(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """If the table has changed, the deletion ends and reports what it has deleted."""
    bench = Bench()
    first, second = sorted((data_key(), data_key()))
    bench.put(first, second)
    bench.ages()

    def change() -> None:
        if how == "gap":
            bench.lake.put("_delta_log/00000000000000000003.json", b"{}")
            return
        for key in bench.lake.contents():
            if key.startswith("_delta_log/"):
                bench.lake.delete(key)
        if how == "recreated":
            bench.world.log.create()
            bench.world.log.append(File("new.parquet"))

    report, problem = interrupted(bench, monkeypatch, change)
    assert problem is not None
    assert [one.deleted for one in report.orphans] == [True, False]
    assert second in bench.lake.contents()


def test_a_file_that_cannot_be_deleted_is_named_and_the_others_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file or upload that cannot be deleted is named, and the others are deleted."""
    bench = Bench()
    good, bad = data_key(), data_key()
    bench.put(good, bad)
    bench.lake.begin_upload(Upload(data_key(), "1"))
    bench.ages()
    inner = bench.lake.delete

    def refuse(key: str) -> None:
        if key == bad:
            raise StoreError("denied", denied=True)
        inner(key)

    def refuse_abort(_: Upload) -> None:
        raise StoreError("denied")

    monkeypatch.setattr(bench.lake, "delete", refuse)
    monkeypatch.setattr(bench.lake, "abort", refuse_abort)
    report = bench.delete()
    assert {one.key: (one.deleted, one.error) for one in report.orphans} == {good: (True, None), bad: (False, "denied")}
    assert [(one.aborted, one.error) for one in report.uploads] == [(False, "denied")]
    assert report.has_failed
