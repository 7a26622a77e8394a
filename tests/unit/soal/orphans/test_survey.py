"""`soal orphans` surveys a Delta table's folder for old, unreferenced files while commits and writes go on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from safewriter.objects import Upload
from safewriter.objects.store import PAGE
from safewriter.settle.recovery import Cause
from soal.orphans.log_actions import SharedFolderError, UnreadableLogError
from tests.unit.safewriter.delta_log import File, creation
from tests.unit.soal.orphans.bench import Bench, data_key, vector_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.objects import ListedObject, ObjectStore
    from tests.support.memory_store import MemoryObjectStore


class Interrupted:
    """The table's store; it calls a function after the folder was listed, or after the log was read again."""

    def __init__(self, inner: MemoryObjectStore, happens: Callable[[], object], *, at_the_log: bool) -> None:
        self._inner, self._happens, self._at_the_log = inner, happens, at_the_log

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def list(self, prefix: str, *, start_after: str = "", at_once: int = PAGE) -> Iterator[ListedObject]:
        yield from self._inner.list(prefix, start_after=start_after, at_once=at_once)
        if start_after if self._at_the_log else not prefix:
            self._happens()


def interrupted(bench: Bench, happens: Callable[[], object], *, at_the_log: bool = False) -> ObjectStore:
    store: ObjectStore = Interrupted(bench.lake, happens, at_the_log=at_the_log)  # type: ignore[assignment]
    return store


def test_old_files_that_no_version_refers_to_are_found_by_kind() -> None:
    """Old files are found by kind, with sizes; the log and its files are not among them."""
    bench = Bench()
    strange = {data_key("day=1/"): "data", vector_key(): "deletion_vector", data_key("_change_data/"): "change_data"}
    bench.put(*strange)
    bench.ages()
    report = bench.look()
    assert {one.key: one.kind for one in report.orphans} == strange
    assert {one.bytes for one in report.orphans} == {len(b"left behind")}
    assert (report.retained.files, report.version, report.dry_run) == (1, 1, True)


def test_what_any_version_has_added_removed_or_changed_is_kept() -> None:
    """All files that any version added, removed or changed are kept while its commit exists: VACUUM deletes them."""
    bench = Bench()
    added, removed = File("a%20b/part-1.parquet"), File("part-2.parquet")
    bench.world.log.append(added, removed)
    bench.put("_change_data/cdc-1.parquet")
    cdc = {"cdc": {"path": "_change_data/cdc-1.parquet"}}
    bench.world.log.commit([{"commitInfo": {}}, {"remove": {"path": removed.path}}, cdc])
    bench.ages(400)
    report = bench.look()
    assert (report.orphans, report.retained.files) == ((), 4)


def test_what_is_younger_than_the_bound_is_only_counted() -> None:
    """Files younger than the bound, by S3's clock, are only counted: a running write may need them."""
    bench = Bench()
    old, young = data_key(), data_key()
    bench.put(old)
    bench.ages(1)
    bench.put(young)
    bench.ages(6.5)
    report = bench.look()
    assert [one.key for one in report.orphans] == [old]
    assert report.young.files == 1


def test_what_is_no_file_of_a_table_is_only_counted() -> None:
    """Files that are not the table's are only counted."""
    bench = Bench()
    bench.put("_SUCCESS", "readme.txt", "_checkpoints/part-0.parquet", "folder/")
    bench.ages()
    report = bench.look()
    assert (report.orphans, report.other.files) == ((), 3)


@pytest.mark.parametrize(
    "log",
    ["_delta_log/00000000000000000000.json", "metadata/v1.metadata.json", ".hoodie/hoodie.properties"],
)
@pytest.mark.parametrize("folder", ["sub/", "tenant\nA/"])
def test_a_table_inside_the_table_is_left_alone(folder: str, log: str) -> None:
    """A table inside the table is left alone with its uploads, even if its files are listed before its log."""
    bench = Bench()
    bench.put(f"{folder}A/part-1.parquet", f"{folder}{log}", f"{folder}z/part-2.parquet", "subway/part-1.parquet")
    bench.lake.begin_upload(Upload(f"{folder}part-3.parquet", "1"))
    bench.ages()
    report = bench.look()
    assert [one.key for one in report.orphans] == ["subway/part-1.parquet"]
    assert (report.other_tables, report.uploads) == ((folder,), ())


@pytest.mark.parametrize(
    ("key", "name", "formats"),
    [
        ("metadata/v1.metadata.json", "iceberg", "iceberg"),
        ("v1.metadata.json", "iceberg", "iceberg"),
        ("metadata/v1.metadata.json.gz", "iceberg", "iceberg"),
        (".hoodie/hoodie.properties", "hudi", "iceberg,Hudi"),
    ],
)
def test_a_folder_that_another_table_shares_is_not_judged(key: str, name: str, formats: str) -> None:
    """Unless the log says that it is the same table: the other one's files may have names like this one's."""
    bench = Bench()
    bench.put(key, data_key())
    bench.ages()
    with pytest.raises(SharedFolderError, match=f"{name} metadata lie in its folder"):
        bench.look()
    bench.world.log.commit(creation({"delta.universalFormat.enabledFormats": formats}))
    assert len(bench.look().orphans) == 1


@pytest.mark.parametrize("key", ["data/00000-1-x-0-00001.parquet", "hudi/9d0c-0_0-1-0_2026.parquet", "a/b.parquet"])
def test_a_file_that_is_not_named_as_delta_s_is_held(key: str) -> None:
    """It may be another table's, whose metadata lie elsewhere; its upload is held, too."""
    bench = Bench()
    bench.put(key)
    bench.lake.begin_upload(Upload(key, "1"))
    bench.ages()
    report = bench.look()
    assert "not named as writers of Delta tables" in (report.orphans[0].held or "")
    assert "not named as writers of Delta tables" in (report.uploads[0].held or "")


@pytest.mark.parametrize("guarded", [True, False])
def test_a_commit_that_lands_while_the_files_are_listed_keeps_its_files(guarded: object) -> None:
    """A commit that lands during the listing keeps its files, also from a slow writer without SafeWriter."""
    bench = Bench()
    late = File(data_key())
    bench.put(late.path)
    bench.ages()
    store = interrupted(bench, lambda: bench.world.log.append(late))
    assert bench.look(store, guarded=bool(guarded)).orphans == ()


@pytest.mark.parametrize("at_the_log", [False, True])
def test_a_write_that_ends_meanwhile_keeps_its_files(*, at_the_log: bool) -> None:
    """A write that ends during the survey keeps its files: it was open, or its commit is in the log."""
    bench = Bench()
    job = bench.world.job(deadline_ms=None).begin()
    bench.ages()

    def end() -> None:
        job.land()
        assert job.success()
        bench.world.checkpoints.unmark(bench.world.key, job.attempt.nonce)

    report = bench.look(interrupted(bench, end, at_the_log=at_the_log))
    assert {one.key for one in report.orphans if one.held is None} == (set() if at_the_log else {job.leftover})


def test_nothing_of_an_open_write_is_free_however_old() -> None:
    """No file of an open write is free, with or without its prefix: a younger file may be its deletion vector."""
    bench = Bench()
    before, during = vector_key(), vector_key()
    bench.put(before)
    bench.ages(1)
    job = bench.world.job(deadline_ms=None).begin()
    bench.put(during)
    bench.ages()
    report = bench.look()
    assert {one.key for one in report.orphans if one.held is None} == {before}
    assert {one.key for one in report.orphans if one.held} == {during, job.leftover, *(file.key for file in job.files)}
    assert [one.run_key for one in report.open_writes or ()] == ["run"]
    assert [bool(upload.held) for upload in report.uploads] == [True]


def test_what_a_settled_attempt_has_left_is_free() -> None:
    """A file or upload that a thawed sandbox wrote after the clean-up is free."""
    bench = Bench()
    job = bench.world.job().begin()
    bench.world.owner_dies()
    bench.world.settle(Cause.OPERATOR)
    late = f"{job.document.attempt.prefix}part-00009.parquet"
    bench.put(late)
    bench.lake.begin_upload(Upload(late, "1"))
    bench.ages()
    report = bench.look()
    assert [(one.key, one.kind, one.held) for one in report.orphans] == [(late, "marked", None)]
    assert [(one.key, one.held) for one in report.uploads] == [(late, None)]


def test_what_bears_a_mark_that_the_checkpoint_bucket_does_not_know_is_held() -> None:
    """A prefix that the checkpoint bucket does not know is held: it may belong to another bucket."""
    bench = Bench()
    bench.put(f"sw-0123456789ab-1-0123456789abcdef-{data_key()}")
    bench.ages()
    assert [one.held for one in bench.look().orphans] == ["the checkpoint bucket has no document of its attempt"]


def test_without_a_checkpoint_bucket_what_bears_a_mark_is_held() -> None:
    """Without a checkpoint bucket files with a SafeWriter prefix are held."""
    bench = Bench()
    job = bench.world.job().begin()
    strange = data_key()
    bench.put(strange)
    bench.ages()
    report = bench.look(guarded=False)
    assert {one.key for one in report.orphans if one.held is None} == {strange}
    assert job.leftover in {one.key for one in report.orphans if one.held}
    assert (report.open_writes, [bool(upload.held) for upload in report.uploads]) == (None, [True])


def test_old_uploads_are_found_and_young_or_foreign_ones_are_not() -> None:
    """Old uploads are found, except young ones and those of the log and of hidden folders."""
    bench = Bench()
    old = data_key()
    bench.lake.begin_upload(Upload(old, "1"))
    for key in ("_delta_log/00000000000000000009.checkpoint.parquet", "_spark/part-0.parquet", "readme.txt"):
        bench.lake.begin_upload(Upload(key, "2"))
    bench.ages()
    bench.lake.begin_upload(Upload(data_key(), "3"))
    assert [(one.key, one.upload_id, one.held) for one in bench.look().uploads] == [(old, "1", None)]


@pytest.mark.parametrize(
    "action",
    [
        {"clone": {"path": "x"}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["ofTomorrow"]}},
        {"add": {"path": "s3://other/table/part-0.parquet"}},
    ],
)
def test_a_table_that_is_not_understood_is_not_judged(action: dict[str, object]) -> None:
    """In a table that is not understood, no file is called an orphan."""
    bench = Bench()
    bench.world.log.commit([{"commitInfo": {}}, action])
    bench.put(data_key())
    bench.ages()
    with pytest.raises(UnreadableLogError):
        bench.look()


def test_a_damaged_commit_is_not_passed_over() -> None:
    """A damaged commit is an error: it may have added files."""
    bench = Bench()
    bench.lake.put("_delta_log/00000000000000000002.json", json.dumps({"add": {}}).encode()[:-1])
    with pytest.raises(UnreadableLogError, match="cannot be read"):
        bench.look()


def test_it_says_how_far_it_is() -> None:
    """Progress is reported for every thousand objects, since listing millions of keys takes minutes."""
    bench = Bench()
    bench.put(*(f"other/{number}" for number in range(2100)))
    bench.look()
    assert bench.seen == [1000, 2000]
