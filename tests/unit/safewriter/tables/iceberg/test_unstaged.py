"""What no commit has ever brought into the table: deleted if it is the attempt's own, and nothing else is."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy.orm import Session
from sqlalchemy.sql.dml import Update

from safewriter.objects.location import Location
from safewriter.objects.store import Upload
from safewriter.recovery import Cause
from safewriter.state import Status
from safewriter.tables.iceberg.publishing import forget
from safewriter.tables.iceberg.staging import branch_of
from tests.unit.safewriter.tables.iceberg.bench import KilledError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.checkpoint import HeldCheckpoint
    from tests.unit.safewriter.tables.iceberg.bench import Bench


def test_files_of_tasks_that_were_ended_before_they_were_staged_go_by_their_names(bench: Bench) -> None:
    """Exactly those with the attempt's mark that no snapshot of it brought in; unfinished uploads are aborted."""
    held = bench.claim()
    mark = branch_of(held.document.attempt)
    bench.stage(held, f"{mark}-00000-7-staged")
    folder = Location.parse(f"{bench.load().metadata.location}/data").key
    for name in (f"{mark}-00001-8-unstaged", f"{mark[:-1]}-another"):
        bench.lake.put(f"{folder}/part=1/{name}.parquet", b"parquet")
    bench.lake.begin_upload(Upload(f"{folder}/{mark}-00002-9-torn.parquet", "1"))
    assert bench.settle().status is Status.COMMITTED
    assert not bench.document.attempt.cleaned
    bench.grace_passes()
    bench.recovery().clean(bench.write.key)
    assert bench.data() == {"foreign-0", f"{mark}-00000-7-staged", f"{mark[:-1]}-another"}
    assert list(bench.lake.uploads("")) == []
    bench.check()


def test_a_file_that_somebody_has_committed_stays_whatever_its_name_says(bench: Bench) -> None:
    """Also if the snapshot that brought it in is gone, and another one carries it on."""
    mark = branch_of(bench.claim().document.attempt)
    gone = bench.add("main", f"{mark}-00000-7-theirs")
    bench.add("main", "foreign-1")
    bench.settle(Cause.EXCEPTION)
    assert forget(bench.one(), bench.load(), [gone])
    bench.grace_passes()
    bench.recovery().clean(bench.write.key)
    assert bench.document.attempt.cleaned
    assert bench.data() == {"foreign-0", "foreign-1", f"{mark}-00000-7-theirs"}
    bench.check()


def test_files_of_an_earlier_attempt_stay_if_they_were_committed_after_all(empty: Bench) -> None:
    """A creation that landed late is the table that the next attempt begins on."""
    first = empty.claim()
    empty.settle()
    empty.create()
    empty.commit(first, name=f"{branch_of(first.document.attempt)}-00000-7-late")
    empty.stage(empty.claim(), "again")
    empty.settle()
    empty.grace_passes()
    empty.recovery().clean(empty.write.key)
    assert empty.document.attempt.cleaned
    empty.check()


def test_data_files_are_looked_for_where_the_table_has_them(bench: Bench) -> None:
    """A table may name a place of its own for them."""
    with bench.load().transaction() as change:
        change.set_properties({"write.data.path": "s3a://lake/elsewhere"})
    mark = branch_of(bench.claim().document.attempt)
    bench.lake.put(f"elsewhere/{mark}-00000-7-x.parquet", b"parquet")
    bench.settle()
    assert list(bench.lake.list("elsewhere/")) == []


# -- metadata ----------------------------------------------------------------------------------------------------------


@contextmanager
def killed_before_the_pointer_is_set(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a process end in a commit whose metadata file is on S3."""

    def execute(self: Session, statement: Any, *args: Any, **more: Any) -> Any:
        if isinstance(statement, Update):
            raise KilledError
        return original(self, statement, *args, **more)

    original = Session.execute
    with monkeypatch.context() as patched, suppress(KilledError):
        patched.setattr(Session, "execute", execute)
        yield


def metadata_files(bench: Bench) -> set[str]:
    """The metadata files that the table does not know."""
    every = {one.key for one in bench.lake.list("") if one.key.endswith(".metadata.json")}
    return every - bench.referred()


def test_manifests_that_no_snapshot_has_come_to_name_go_by_their_names(bench: Bench) -> None:
    """Those of the attempt, and nobody else's."""
    mark = branch_of(bench.claim().document.attempt)
    folder = Location.parse(f"{bench.load().metadata.location}/metadata").key
    others = [f"{folder}/{name}" for name in (f"{mark[:-1]}-m0.avro", "00000000-m0.avro", "snap-1-1-00000000.avro")]
    ours = [f"{folder}/{mark}-{name}" for name in ("00000000-m0.avro", "snap-1-1-00000000.avro")]
    for key in (*others, *ours):
        bench.lake.put(key, b"avro")
    bench.settle()
    assert {one.key for one in bench.lake.list("")} - bench.referred() == set(others)


def test_metadata_is_looked_for_where_the_table_has_it(bench: Bench) -> None:
    """A table may name a place of its own for it."""
    with bench.load().transaction() as change:
        change.set_properties({"write.metadata.path": "s3a://lake/elsewhere"})
    mark = branch_of(bench.claim().document.attempt)
    bench.lake.put(f"elsewhere/{mark}-00000000-m0.avro", b"avro")
    bench.settle()
    assert {one.key for one in bench.lake.list("elsewhere/")} <= bench.referred()


def stages(bench: Bench, held: HeldCheckpoint) -> None:
    bench.stage(held)


def publishes(bench: Bench, held: HeldCheckpoint) -> None:
    del held
    bench.settle()


def drops(bench: Bench, held: HeldCheckpoint) -> None:
    del held
    bench.settle(Cause.EXCEPTION)


@pytest.mark.parametrize("end", [stages, publishes, drops])
def test_the_metadata_file_of_a_commit_that_never_came_goes(
    bench: Bench, end: Callable[[Bench, HeldCheckpoint], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the attempt was about to do, when the table shows a later one."""
    held = bench.claim()
    if end is not stages:
        bench.stage(held)
    with killed_before_the_pointer_is_set(monkeypatch):
        end(bench, held)
    assert len(metadata_files(bench)) == 1
    bench.settle()
    bench.grace_passes()
    bench.recovery().clean(bench.write.key)
    assert metadata_files(bench) == set()
    bench.check()


def test_a_metadata_file_that_may_still_be_committed_stays(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog still shows the one that it was made from; it goes with the next attempt."""
    with killed_before_the_pointer_is_set(monkeypatch):
        bench.claim()
    assert len(metadata_files(bench)) == 1
    bench.settle()
    bench.grace_passes()
    bench.recovery().clean(bench.write.key)
    assert len(metadata_files(bench)) == 1
    bench.stage(bench.claim(), "retry")
    bench.settle()
    assert metadata_files(bench) == set()
    bench.check()


def test_the_metadata_file_of_somebody_elses_commit_stays(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be about to be tried again, and it is not ours."""
    bench.claim()
    with killed_before_the_pointer_is_set(monkeypatch):
        bench.add("main", "foreign-1")
    theirs = metadata_files(bench)
    bench.settle()
    assert len(theirs) == 1
    assert metadata_files(bench) == theirs


def test_what_the_table_has_forgotten_is_not_judged(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A metadata file that it has shown, and whose name it no longer holds, would look the same."""
    with bench.load().transaction() as change:
        change.set_properties({"write.metadata.previous-versions-max": "2"})
    held = bench.claim()
    with killed_before_the_pointer_is_set(monkeypatch):
        bench.stage(held)
    for number in range(4):
        bench.add("main", f"foreign-{number + 1}")
    before = metadata_files(bench)
    bench.settle()
    assert before <= metadata_files(bench)
    bench.check()


def test_the_metadata_file_of_a_creation_that_others_were_before_goes(empty: Bench) -> None:
    """The table that is there is another one."""
    held = empty.claim()
    empty.create()
    empty.commit(held)
    creation = empty.load()
    path = Location.parse(creation.metadata_location).key.replace("/00001-", "/00000-")
    dead = creation.metadata.model_copy(update={"metadata_log": []})
    empty.catalog.drop_table("db.t")
    empty.lake.put(path, dead.model_dump_json().encode())
    empty.settle()
    empty.create()
    empty.commit(empty.claim(), name="again")
    empty.settle()
    assert path not in {one.key for one in empty.lake.list("")}
    empty.check()


def test_the_metadata_file_of_a_commit_that_others_were_before_goes_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pyiceberg leaves it where it is; whoever lost deletes it, and publishes the append again."""
    bench.stage(bench.claim())
    others = iter(["foreign-1"])
    original = Session.execute

    def execute(self: Session, statement: Any, *args: Any, **more: Any) -> Any:
        if isinstance(statement, Update) and (name := next(others, None)) is not None:
            bench.add("main", name)
        return original(self, statement, *args, **more)

    monkeypatch.setattr(Session, "execute", execute)
    assert bench.settle(cleans_later=True).status is Status.COMMITTED
    assert bench.rows() == 30
    assert metadata_files(bench) == set()
    bench.check()
