"""The second witness of a publication, and the last guard of a clean-up: a file that a snapshot names stays."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.errors import UnknownOutcomeError
from safewriter.objects.location import Location
from safewriter.objects.store import StoreError
from safewriter.record.document import Status
from safewriter.tables.iceberg.table import name_of

if TYPE_CHECKING:
    from safewriter.record.checkpoints import HeldCheckpoint
    from safewriter.record.document import Checkpoint
    from tests.unit.safewriter.tables.iceberg.bench import Bench


def own_files(bench: Bench, held: HeldCheckpoint) -> set[str]:
    return {one.key for one in bench.lake.list("") if f"/{name_of(held.document.attempt)}/" in one.key}


def rolled_back(held: HeldCheckpoint) -> Checkpoint:
    """The document as a settler without the second witness would have left it."""
    return held.document.moved(Status.ROLLED_BACK, reason="killed", settled_ms=1, settled_by="killed")


def published_and_forgotten(bench: Bench) -> HeldCheckpoint:
    """A publication without mark and snapshot, whose file main's head names nevertheless."""
    held = bench.claim()
    snapshot = bench.publish(held)
    bench.add("main", "foreign-1")
    bench.unset_mark(held)
    bench.forget(snapshot)
    return held


def manifests_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The manifests, and lists of them, that are read from now on."""
    read: list[str] = []
    get = bench.lake.get

    def noted(key: str, **more: Any) -> Any:
        if key.endswith(".avro"):
            read.append(key)
        return get(key, **more)

    monkeypatch.setattr(bench.lake, "get", noted)
    return read


def test_a_publication_without_its_mark_is_known_by_its_snapshot(bench: Bench) -> None:
    """Its process had ended before the verdict; the clean-up then keeps its files."""
    held = bench.claim()
    snapshot = bench.publish(held)
    bench.unset_mark(held)
    document = bench.settle(requests_ended=True)
    assert (document.status, document.attempt.commit_version) == (Status.COMMITTED, snapshot)
    assert (document.attempt.rows, document.attempt.bytes) == (10, 7)
    assert own_files(bench, held)


def test_a_mark_that_cannot_be_read_is_no_obstacle_beside_the_snapshot(bench: Bench) -> None:
    """Somebody has set the property to something else."""
    held = bench.claim()
    snapshot = bench.publish(held)
    with bench.load().transaction() as change:
        change.set_properties({f"safewriter.{name_of(held.document.attempt)}": "yes"})
    assert bench.settle().attempt.commit_version == snapshot


@pytest.mark.parametrize("mark", ["9" * 30 + " 10 7 1", "9" * 19 + " 10 7 1", "yes"])
def test_a_mark_of_no_snapshot_decides_nothing(bench: Bench, mark: str) -> None:
    """Its document stays readable, and says unknown."""
    held = bench.claim()
    with bench.load().transaction() as change:
        change.set_properties({f"safewriter.{name_of(held.document.attempt)}": mark})
    with pytest.raises(UnknownOutcomeError, match=r"no mark|the commit's version"):
        bench.settle()
    assert bench.document.status is Status.UNKNOWN


@pytest.mark.parametrize("kept", ["mark", "snapshot", "neither"])
def test_no_file_that_a_snapshot_names_is_deleted_whatever_the_document_says(bench: Bench, kept: str) -> None:
    """Each witness alone keeps it, and so does a manifest of a later snapshot without both."""
    held = bench.claim()
    snapshot = bench.publish(held)
    bench.add("main", "foreign-1")
    if kept != "mark":
        bench.unset_mark(held)
    if kept != "snapshot":
        bench.forget(snapshot)
    before = own_files(bench, held)
    assert bench.table().remove_leftovers(rolled_back(held), held.document.attempts) == 0
    assert own_files(bench, held) == before


@pytest.mark.parametrize("has_files", [True, False])
def test_an_attempt_that_a_false_document_calls_rolled_back_is_fenced_before_its_files_go(
    bench: Bench,
    has_files: bool,  # noqa: FBT001
) -> None:
    """It may be alive: what it publishes behind that would name files that are gone. Without files it needs none."""
    held = bench.claim()
    name = name_of(held.document.attempt)
    if has_files:
        bench.lake.put(Location.parse(f"{bench.load().metadata.location}/data/{name}/one.parquet").key, b"rows")
    assert bench.table().remove_leftovers(rolled_back(held), held.document.attempts) == int(has_files)
    assert (name in bench.load().metadata.refs) is has_files


def test_an_attempt_that_its_settler_knows_to_be_dead_is_not_fenced_by_a_clean_up(bench: Bench) -> None:
    """Its gate is shut, or its process has ended without a commit."""
    held = bench.claim()
    name = name_of(held.document.attempt)
    bench.lake.put(Location.parse(f"{bench.load().metadata.location}/data/{name}/one.parquet").key, b"rows")
    attempts, nonce = held.document.attempts, held.document.owner
    assert bench.table().remove_leftovers(rolled_back(held), attempts, dead_nonce=nonce) == 1
    assert name not in bench.load().metadata.refs


def test_an_attempt_that_publishes_before_the_fence_of_a_clean_up_keeps_its_files(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clean-up reads the table behind the fence."""
    held = bench.claim()
    pointer = type(bench.pointer())
    name = name_of(held.document.attempt)
    bench.lake.put(Location.parse(f"{bench.load().metadata.location}/data/{name}/one.parquet").key, b"rows")
    commit = pointer.commit

    def raced(*arguments: Any) -> Any:
        monkeypatch.setattr(pointer, "commit", commit)
        bench.publish(held)
        return commit(*arguments)

    monkeypatch.setattr(pointer, "commit", raced)
    before = own_files(bench, held)
    assert bench.table().remove_leftovers(rolled_back(held), held.document.attempts) == 0
    assert before <= own_files(bench, held)


@pytest.mark.parametrize("version", [1, 2])
def test_files_that_no_snapshot_names_go_also_beside_other_commits(bench: Bench, version: int) -> None:
    """Format version 1 has no order of commits, so all manifests are read."""
    if version == 1:
        bench.catalog.drop_table("db.t")
        bench.catalog.create_table(bench.name.identifier, bench.schema, properties={"format-version": "1"})
        bench.add("main", "foreign-0")
    held = bench.claim()
    bench.add("main", "foreign-1")
    folder = Location.parse(f"{bench.load().metadata.location}/data/{name_of(held.document.attempt)}").key
    bench.lake.put(f"{folder}/one.parquet", b"rows")
    assert bench.table().remove_leftovers(rolled_back(held), held.document.attempts) == 1
    assert not own_files(bench, held)


def test_without_a_commit_since_the_claim_no_manifest_is_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """That there is none is the witness; a clean-up then sends no further request."""
    held = bench.claim()
    read = manifests_read(bench, monkeypatch)
    bench.table().remove_leftovers(rolled_back(held), held.document.attempts)
    assert not read


@pytest.mark.parametrize("seconds", [0, 5])
def test_a_document_that_says_a_later_snapshot_of_its_claim_leads_to_no_file_in_use(bench: Bench, seconds: int) -> None:
    """The list of manifests of that snapshot is not older than the files, by S3's own times, so all are read."""
    held = bench.claim()
    snapshot = bench.publish(held)
    bench.now_ms += seconds * 1000
    head = bench.add("main", "foreign-1")
    bench.unset_mark(held)
    bench.forget(snapshot)
    before = own_files(bench, held)
    false = dataclasses.replace(held.document.attempt, version_before=head)
    document = dataclasses.replace(rolled_back(held), attempts=(false,))
    assert bench.table().remove_leftovers(document, document.attempts) == 0
    assert own_files(bench, held) == before


def test_files_that_are_younger_than_the_claim_s_snapshot_need_no_manifest(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3's times show it; one listing tells them."""
    held = bench.claim()
    bench.now_ms += 5000
    folder = Location.parse(f"{bench.load().metadata.location}/data/{name_of(held.document.attempt)}").key
    bench.lake.put(f"{folder}/one.parquet", b"rows")
    read = manifests_read(bench, monkeypatch)
    assert bench.table().remove_leftovers(rolled_back(held), held.document.attempts) == 1
    assert not read


def test_files_of_the_second_of_the_claim_s_snapshot_need_the_manifests_since_an_older_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks may follow one another that fast; a table may have thousands of snapshots."""
    for number in range(8):
        bench.add("main", f"foreign-{number}")
        bench.now_ms += 5000
    bench.add("main", "last")
    held = bench.claim()
    folder = Location.parse(f"{bench.load().metadata.location}/data/{name_of(held.document.attempt)}").key
    bench.lake.put(f"{folder}/one.parquet", b"rows")
    read = manifests_read(bench, monkeypatch)
    assert bench.table().remove_leftovers(rolled_back(held), held.document.attempts) == 1
    assert len(read) == 2


def test_where_the_snapshot_of_the_claim_is_gone_all_manifests_are_read(bench: Bench) -> None:
    """It is unknown then which commits are younger."""
    held = published_and_forgotten(bench)
    bench.forget(held.document.attempt.version_before)
    before = own_files(bench, held)
    assert bench.table().remove_leftovers(rolled_back(held), held.document.attempts) == 0
    assert own_files(bench, held) == before


@pytest.mark.parametrize("damage", ["gone", "no Avro"])
def test_where_a_manifest_cannot_be_read_nothing_is_deleted(bench: Bench, damage: str) -> None:
    """They are left to `remove_orphan_files`."""
    held = bench.claim()
    folder = Location.parse(f"{bench.load().metadata.location}/data/{name_of(held.document.attempt)}").key
    bench.lake.put(f"{folder}/one.parquet", b"rows")
    bench.add("main", "foreign-1")
    current = bench.load().metadata.current_snapshot()
    assert current is not None
    key = Location.parse(current.manifest_list).key
    if damage == "gone":
        bench.lake.delete(key)
    else:
        bench.lake.put(key, b"no Avro")
    assert bench.table().remove_leftovers(rolled_back(held), held.document.attempts) == 0
    assert own_files(bench, held)


def test_what_cannot_be_read_in_time_is_left_to_a_later_settler(bench: Bench) -> None:
    """So it is if S3 does not answer."""
    held = published_and_forgotten(bench)
    before = own_files(bench, held)
    late = dataclasses.replace(bench.table(), may_go_on=lambda: False)
    with pytest.raises(StoreError, match="out of time"):
        late.remove_leftovers(rolled_back(held), held.document.attempts)
    assert own_files(bench, held) == before


@pytest.mark.parametrize("denied", [True, False])
def test_a_store_that_shows_no_manifest_lets_no_file_be_deleted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, denied: bool
) -> None:
    """If reads are denied, no settler retries for ever."""
    held = published_and_forgotten(bench)
    before = own_files(bench, held)
    get = bench.lake.get

    def fail(key: str, **more: Any) -> Any:
        if key.endswith(".avro"):
            raise StoreError("GET", denied=denied)
        return get(key, **more)

    monkeypatch.setattr(bench.lake, "get", fail)
    if denied:
        assert bench.table().remove_leftovers(rolled_back(held), held.document.attempts) == 0
    else:
        with pytest.raises(StoreError):
            bench.table().remove_leftovers(rolled_back(held), held.document.attempts)
    assert own_files(bench, held) == before


def test_manifests_are_found_where_old_metadata_names_them_itself(bench: Bench) -> None:
    """Format version 1 allows a snapshot without a manifest list."""
    held = published_and_forgotten(bench)
    table = bench.load()
    where = Location.parse(table.metadata_location).key
    found = bench.lake.get(where)
    current = table.metadata.current_snapshot()
    assert found is not None
    assert current is not None
    metadata = json.loads(found.body)
    for snapshot in metadata["snapshots"]:
        del snapshot["manifest-list"]
        snapshot["manifests"] = [one.manifest_path for one in current.manifests(table.io)]
    bench.lake.put(where, json.dumps(metadata).encode())
    before = own_files(bench, held)
    assert bench.table().remove_leftovers(rolled_back(held), held.document.attempts) == 0
    assert own_files(bench, held) == before
