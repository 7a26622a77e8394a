"""The clean-up of snapshots removes objects that no kept one names, and none of living builds or of others."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.objects.store import StoreError, Upload
from safewriter.snapshots.config import WriteConfig
from safewriter.snapshots.errors import ConfigValidationError, ManifestParseError, ReaderStateError
from safewriter.snapshots.format.current import CURRENT, Current
from safewriter.snapshots.keep.cleanup import Cleanup, cleanup
from safewriter.snapshots.keep.removal import notices_of, remove_manifest
from safewriter.snapshots.keep.rollback import Target, rollback
from safewriter.snapshots.keep.survey import Keeping, Kind, survey
from safewriter.snapshots.read.reader import SnapshotReader
from safewriter.snapshots.read.verification import verify
from safewriter.snapshots.settle.leftovers import BuildId
from safewriter.snapshots.write.build_record import BuildRecord
from tests.support.snapshots import PREFIX, Folder, as_slatedb, build, publish
from tests.unit.safewriter.snapshots.conftest import ROWS
from tests.unit.safewriter.snapshots.keep.test_build_records import record
from tests.unit.safewriter.snapshots.keep.test_rollback import key_of

if TYPE_CHECKING:
    from tests.unit.safewriter.snapshots.conftest import World


def clean(world: World, *, last: int = 1, dry_run: bool = False, **keeping: Any) -> Cleanup:
    return cleanup(world.source, Keeping(last=last, **keeping), dry_run=dry_run)


def shards(world: World, run: str) -> list[str]:
    return world.keys(f"shards/run_id={run}/")


def removed(found: Cleanup, kind: Kind) -> set[str]:
    return {one.leftover.key for one in found.removals if one.removed and one.leftover.kind is kind}


def renew(world: World, run: str, **changes: Any) -> None:
    """Write a run's record as a living build does."""
    times = {"updated_at": world.now.isoformat(), "lease_expires_at": (world.now + timedelta(minutes=10)).isoformat()}
    world.folder.put(f"runs/x_run_id={run}_0123/run.yaml", record(**{**times, **changes}))


def test_snapshots_that_are_not_kept_go(world: World) -> None:
    """Their manifests and shards are removed; the current snapshot and the last ones stay readable."""
    refs = [world.publish(run) for run in ("first", "second", "third")]
    gone = {"second": set(shards(world, "second")), "first": set(shards(world, "first"))}
    world.passes(days=2)
    assert not clean(world, last=3).removals
    found = clean(world, last=2)
    assert (removed(found, Kind.MANIFEST), removed(found, Kind.SHARD)) == (
        {key_of(refs[0])},
        gone["first"],
    )
    assert {one.leftover.why for one in found.removals} == {
        "it is not among the last 2",
        "no kept snapshot refers to it",
    }
    assert removed(clean(world), Kind.SHARD) == gone["second"]
    assert world.keys("manifests/") == [key_of(refs[2])]
    assert world.read() == ROWS
    assert not clean(world).removals


def test_shards_that_a_kept_snapshot_has_taken_over_stay(world: World) -> None:
    """Those of the first build which only its removed manifest names are removed."""
    first = world.source.manifest(world.publish("first"))
    second = build(world.folder, ROWS, "second", created=world.now)
    taken, own = first.shards[:3], second.shards[3:]
    world.publisher.publish(replace(second, shards=(*taken, *own)), world.publisher.base())
    world.passes(days=2)
    found = clean(world)
    assert {key.rpartition("/")[0] for key in world.keys("shards/")} == {
        shard.db_url.removeprefix(world.folder.uri("")) for shard in (*taken, *own)
    }
    assert len(removed(found, Kind.MANIFEST)) == 1
    assert world.read() == ROWS
    assert verify(world.source).is_sound
    assert not clean(world).removals


def test_the_current_snapshot_stays_however_old_it_is(world: World) -> None:
    """After a rollback it is not among the last ones."""
    old, second, _ = (world.publish(run) for run in ("old", "second", "third"))
    rollback(world.source, Target(manifest_ref=old), publisher=world.publisher)
    world.passes(days=2)
    found = clean(world)
    assert {one.leftover.key for one in found.removals if one.leftover.kind is Kind.MANIFEST} == {key_of(second)}
    assert not shards(world, "second")
    assert shards(world, "third")
    assert world.read() == ROWS


def test_a_dry_run_changes_nothing(world: World) -> None:
    """It reports the leftovers that a clean-up then removes."""
    world.publish("first")
    world.publish("second")
    world.passes(days=2)
    before = world.keys()
    dry = clean(world, dry_run=True)
    assert world.keys() == before
    assert not any(one.removed for one in dry.removals)
    assert {one.leftover for one in clean(world).removals} == {one.leftover for one in dry.removals} != set()


def test_what_is_young_stays(world: World) -> None:
    """The store's clock counts; a manifest that was never current is removed when it is old."""
    world.publish("first")
    lost = world.lose("slow")
    world.passes(hours=10)
    found = clean(world, last=2, age=timedelta(hours=24))
    assert not found.removals
    assert found.survey.now == world.now
    assert found.survey.young == 0
    world.passes(hours=15)
    found = clean(world, last=2, age=timedelta(hours=24))
    assert removed(found, Kind.MANIFEST) == {key_of(lost)}
    assert {one.leftover.why for one in found.removals if one.leftover.kind is Kind.MANIFEST} == {
        "it was never current"
    }
    assert not shards(world, "slow")


def test_shards_without_a_manifest_go_when_their_build_is_old(world: World) -> None:
    """A build whose last object is young may be alive, and needs its first objects."""
    world.publish("current")
    build(world.folder, ROWS, "dead", created=world.now)
    world.passes(hours=20)
    world.folder.put("shards/run_id=dead/db=00003/attempt=00-builddead-late/shard.db", b"")
    world.passes(hours=20)
    found = clean(world)
    assert not found.removals
    assert found.survey.young == len(shards(world, "dead"))
    world.passes(hours=5)
    assert len(removed(clean(world), Kind.SHARD)) > 1
    assert not shards(world, "dead")


def test_losing_attempts_of_the_current_build_go(world: World) -> None:
    """All their files are removed, and the winners stay. A younger build of the same run protects only itself."""
    world.publish("r")
    for key in ("shard.db", "manifest/0001", "wal/1"):
        world.folder.put(f"shards/run_id=r/db=00001/attempt=01-{'b' * 16}-{'1' * 16}/{key}", b"")
    world.folder.put("shards/run_id=r/notes.txt", b"")
    world.passes(days=2)
    world.folder.put("shards/run_id=r/db=00001/attempt=00-other-young/shard.db", b"")
    found = clean(world)
    assert len(removed(found, Kind.SHARD)) == 3
    assert all("b" * 16 in key for key in removed(found, Kind.SHARD))
    assert world.read() == ROWS


def test_a_build_that_lives_keeps_everything(world: World) -> None:
    """Its shards, manifest and uploads stay, however old they are, until its record says that it has failed."""
    world.publish("current")
    upload = Upload("kv/shards/run_id=alive/db=00001/attempt=00-b-t/shard.db", "id")
    build(world.folder, ROWS, "alive", created=world.now)
    world.lose("alive")
    world.bucket.begin_upload(upload)
    world.passes(days=30)
    renew(world, "alive")
    found = clean(world, last=1)
    assert found.survey.living == {"alive"}
    assert not [one for one in found.removals if "run_id=alive" in one.leftover.key]
    assert list(world.bucket.uploads("")) == [upload]
    renew(world, "alive", status="failed")
    assert removed(clean(world), Kind.UPLOAD) == {"shards/run_id=alive/db=00001/attempt=00-b-t/shard.db"}
    assert not shards(world, "alive")
    assert list(world.bucket.uploads("")) == []


def test_a_record_as_builds_write_it_protects_its_run(world: World) -> None:
    """It protects the run until the build or its lease ends."""
    world.publish("current")
    build(world.folder, ROWS, "alive", created=world.now)
    world.passes(days=2)
    names = BuildId.draw("alive", "shards", "runs", world.now)
    with BuildRecord(world.folder, names, WriteConfig(num_dbs=8, s3_prefix=PREFIX), now=lambda: world.now):
        assert clean(world).survey.living == {"alive"}
        world.passes(minutes=11)
        assert not clean(world, dry_run=True).survey.living
    world.passes(minutes=-11)
    assert clean(world).removals
    assert not shards(world, "alive")


def test_an_upload_that_is_young_goes_on(world: World) -> None:
    """An upload of unknown age also stays, and one under another prefix."""
    world.publish("current")
    world.passes(days=2)
    young = Upload("kv/shards/run_id=r/db=1/attempt=0/shard.db", "young")
    elsewhere = Upload("kv2/shards/run_id=r/db=1/attempt=0/shard.db", "old", world.now - timedelta(days=9))
    for upload in (young, elsewhere):
        world.bucket.begin_upload(upload)
    world.bucket._uploads.add(replace(young, id="of unknown age"))
    assert not clean(world).removals


def test_an_old_upload_of_no_shard_stays(world: World) -> None:
    """There is no evidence that a build has begun it."""
    world.publish("current")
    world.bucket.begin_upload(Upload("kv/shards/run_id=r/notes", "id"))
    world.passes(days=2)
    assert not clean(world).removals


def test_a_young_build_protects_no_other_run(world: World) -> None:
    """The attempts of other programs have no build in their names."""
    world.publish("current")
    world.folder.put("shards/run_id=old/db=1/attempt=00/shard.db", b"")
    world.passes(days=2)
    world.folder.put("shards/run_id=young/db=1/attempt=00/shard.db", b"")
    assert removed(clean(world), Kind.SHARD) == {"shards/run_id=old/db=1/attempt=00/shard.db"}


def test_a_current_manifest_that_lies_elsewhere_keeps_its_shards(world: World) -> None:
    """It may be a copy in another place below the prefix."""
    old = world.publish("old")
    world.folder.put("copies/manifest", world.folder.get(key_of(old)).body)
    world.publish("new")
    rollback(world.source, Target(manifest_ref="s3://memory/kv/copies/manifest"), publisher=world.publisher)
    world.passes(days=2)
    assert removed(clean(world), Kind.MANIFEST) == {key_of(old)}
    assert world.read() == ROWS


def test_before_the_first_publication_dead_builds_go(world: World) -> None:
    """A settler has fenced a build, so `_CURRENT` exists without a manifest."""
    world.folder.put(CURRENT, Current.absent(world.now).changed(fenced={"sw-1-1-a": 1}).encode())
    build(world.folder, ROWS, "dead", created=world.now)
    world.passes(days=2)
    assert removed(clean(world), Kind.SHARD)
    assert not shards(world, "dead")


def test_urls_of_folders_may_end_with_a_slash(world: World) -> None:
    """Other writers add one."""
    manifest = build(world.folder, ROWS, "r", created=world.now)
    slashed = tuple(replace(shard, db_url=f"{shard.db_url}/") for shard in manifest.shards)
    world.publisher.publish(replace(manifest, shards=slashed), world.publisher.base())
    world.passes(days=2)
    assert not clean(world).removals
    assert world.read() == ROWS


def test_records_may_lie_elsewhere(world: World) -> None:
    """`run_registry_prefix` names their prefix."""
    world.publish("current")
    build(world.folder, ROWS, "alive", created=world.now)
    world.passes(days=2)
    world.folder.put(
        "registry/x_run_id=alive_0123/run.yaml", record(lease_expires_at=(world.now + timedelta(1)).isoformat())
    )
    assert not clean(world, run_registry_prefix="registry").removals
    assert clean(world).removals


@pytest.mark.parametrize("named", ["runs/", "/runs", "run", "s3://lake/users/runs", "shards/runs", "", "."])
def test_a_folder_that_holds_no_record_takes_no_build_for_dead(world: World, named: str) -> None:
    """The option must name one folder, as a build's does, and builds must have records there."""
    world.publish("current")
    build(world.folder, ROWS, "alive", created=world.now)
    world.passes(days=2)
    lease = (world.now + timedelta(1)).isoformat()
    world.folder.put("runs/x_run_id=alive_0123/run.yaml", record(lease_expires_at=lease))
    with pytest.raises(ConfigValidationError, match="run_registry_prefix"):
        clean(world, run_registry_prefix=named)


def test_shards_of_other_prefixes_are_found(world: World) -> None:
    """A manifest or a record names these prefixes."""
    world.publish("current")
    world.folder.put("parts/run_id=dead/db=1/attempt=00-b-t/shard.db", b"")
    world.folder.put("runs/x_run_id=dead_0123/run.yaml", record(status="failed"))
    world.passes(days=2)
    assert removed(clean(world), Kind.SHARD) == {"parts/run_id=dead/db=1/attempt=00-b-t/shard.db"}


def test_snapshots_may_have_prefixes_of_their_own(world: World) -> None:
    """One snapshot is removed, one stays, and one build is unknown."""
    world.publish("old", shard_prefix="parts")
    world.publish("new", shard_prefix="pieces")
    world.folder.put("pieces/run_id=new/db=1/attempt=01-b-loser/shard.db", b"")
    build(world.folder, ROWS, "dead", created=world.now)
    world.passes(days=2)
    clean(world)
    assert [world.keys(prefix) for prefix in ("parts/", "shards/")] == [[], []]
    assert not [key for key in world.keys("pieces/") if "loser" in key]
    assert world.read() == ROWS


FOREIGN = (
    "events/run_id=7/day=1/attempt=1/part-0.parquet",
    "events/run_id=7/day=1/hour=2/attempt=1/shard.db",
    "events/run_id=7/day=1/attempt=2026-01-02/part-0.parquet",
    "events/run_id=7/day=1/attempt=a/shard.db",
    "other/events/run_id=7/day=1/attempt=1/shard.db",
)


@pytest.mark.parametrize("by", ["record", "manifest"])
@pytest.mark.parametrize("prefix", ["events", "other/events", "other/shards", "other", ".", "..", ""])
def test_neither_a_record_nor_a_manifest_leads_a_clean_up_to_data_of_others(world: World, by: str, prefix: str) -> None:
    """Another snapshot below the prefix stays readable; a table's files and unfinished uploads stay."""
    inner = "s3://memory/kv/other"
    publish(Folder(world.bucket, "kv/other/"), ROWS, "inner", created=world.now)
    for key in FOREIGN:
        world.folder.put(key, b"")
        world.bucket.begin_upload(Upload(f"kv/{key}", "id"))
    old = world.publish("old")
    world.publish("new")
    if by == "record":
        world.folder.put("runs/x_run_id=evil_0123/run.yaml", record(status="failed", shard_prefix=prefix))
    else:
        manifest = replace(world.source.manifest(old), shard_prefix=prefix)
        world.folder.put(key_of(old), manifest.encode())
    gone = set(shards(world, "old"))
    world.passes(days=2)
    found = clean(world)
    assert removed(found, Kind.SHARD) == gone
    assert not removed(found, Kind.UPLOAD)
    assert set(FOREIGN) <= set(world.keys())
    assert {upload.key for upload in world.folder.uploads("")} == set(FOREIGN)
    assert found.survey.prefixes <= {"shards", "events", "other"}
    with SnapshotReader(inner, open_store=world.bucket.opened) as reader:
        assert reader.multi_get(ROWS) == ROWS
    is_told = by == "record" and prefix not in {"events", "other"}
    assert found.survey.unreadable == (("runs/x_run_id=evil_0123/run.yaml",) if is_told else ())


@pytest.mark.parametrize("which", ["current", "last"])
def test_a_kept_manifest_that_cannot_be_read_stops_it(world: World, which: str) -> None:
    """Its references are unknown, so nothing is removed."""
    refs = [world.publish(run) for run in ("first", "second", "third")]
    world.passes(days=2)
    world.folder.put(key_of(refs[2] if which == "current" else refs[1]), b"something else")
    world.passes(days=2)
    before = world.keys()
    with pytest.raises(ManifestParseError):
        clean(world, last=2)
    assert world.keys() == before


def test_a_manifest_that_goes_may_be_damaged(world: World) -> None:
    """Its shards are found without it."""
    ref = world.publish("first")
    world.folder.put(key_of(ref), b"something else")
    world.publish("second")
    world.passes(days=2)
    assert removed(clean(world), Kind.MANIFEST) == {key_of(ref)}
    assert not shards(world, "first")


def test_without_a_pointer_nothing_is_judged(world: World) -> None:
    """It is unknown which snapshot is current."""
    build(world.folder, ROWS, "r", created=world.now)
    world.passes(days=2)
    with pytest.raises(ReaderStateError, match="nothing was published yet"):
        clean(world)


def test_a_rollback_meanwhile_keeps_its_snapshot(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback between the survey and the removal keeps manifest and shards."""
    old = world.publish("old")
    world.publish("new")
    world.passes(days=2)

    def meanwhile(store: Any, key: str) -> bool:
        rollback(world.source, Target(manifest_ref=old), publisher=world.publisher)
        return remove_manifest(store, key)

    monkeypatch.setattr(f"{cleanup.__module__}.remove_manifest", meanwhile)
    found = clean(world)
    assert {one.held for one in found.removals} == {"it is current now", "it is needed now, or gone"}
    assert world.current().manifest_ref == old
    assert world.read() == ROWS


def test_a_publication_meanwhile_keeps_its_shards(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first survey took the build for dead."""
    world.publish("old")
    manifest = build(world.folder, ROWS, "slow", created=world.now)
    base = world.publisher.base()
    world.passes(days=2)

    def meanwhile(*arguments: Any, **more: Any) -> Any:
        found = survey(*arguments, **more)
        if not more:
            world.publisher.publish(manifest, base)
        return found

    monkeypatch.setattr(f"{cleanup.__module__}.survey", meanwhile)
    found = clean(world)
    assert {one.held for one in found.removals} == {"it is needed now, or gone"}
    assert world.current().run_id == "slow"
    assert world.read() == ROWS


def test_a_manifest_that_cannot_be_removed_keeps_its_shards(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rollback to it stays possible. The failure is reported; the next clean-up removes both."""
    old = world.publish("old")
    world.publish("new")
    world.passes(days=2)
    delete = world.bucket.delete

    def refused(key: str) -> None:
        if key.endswith("_run_id=old/manifest"):
            raise StoreError("no answer")
        delete(key)

    monkeypatch.setattr(world.bucket, "delete", refused)
    found = clean(world)
    assert found.has_failed
    assert [one.error for one in found.removals if one.error] == ["no answer"]
    assert shards(world, "old")
    monkeypatch.undo()
    assert rollback(world.source, Target(manifest_ref=old), publisher=world.publisher, dry_run=True).after == old
    assert not clean(world).has_failed
    assert not shards(world, "old")


def test_the_mark_of_a_clean_up_that_died_goes(world: World) -> None:
    """It is removed when it is old, and a rollback to the snapshot is possible again."""
    ref = world.publish("old")
    world.publish("new")
    notice = f"{notices_of(key_of(ref))}1"
    world.folder.put(notice, b"")
    assert not clean(world, last=2).removals
    world.passes(days=2)
    assert removed(clean(world, last=2), Kind.NOTICE) == {notice}
    rollback(world.source, Target(manifest_ref=ref), publisher=world.publisher)


@pytest.mark.parametrize("keeping", [{"last": 0}, {"age": timedelta(seconds=-1)}])
def test_what_is_kept_is_checked(keeping: dict[str, Any]) -> None:
    """The current snapshot always stays, so `last` is at least 1."""
    with pytest.raises(ConfigValidationError):
        Keeping(**keeping)
    Keeping(last=1, age=timedelta())


def test_shards_of_several_objects_stay_or_go_as_a_whole(world: World) -> None:
    """SlateDB's shards are such, and so are those of losing attempts."""
    for run in ("old", "new"):
        base = world.publisher.base()
        manifest = as_slatedb(world.folder, build(world.folder, ROWS, run, created=world.now))
        world.publisher.publish(manifest, base)
        world.folder.put(f"shards/run_id={run}/db=00000/attempt=00-build{run}-lost/compacted/1.sst", b"lost")
        world.passes(hours=1)
    named = [key for key in world.keys("shards/run_id=new/") if "-lost" not in key]
    world.passes(days=10)
    assert removed(clean(world), Kind.SHARD)
    assert world.keys("shards/") == named
    assert len(named) == 2 * len(world.source.manifest(world.source.named().ref).shards)


def test_a_changed_manifest_leads_no_clean_up(world: World) -> None:
    """It is not the one that was published, so what it does not name may be needed."""
    ref = world.publish("now")
    world.passes(days=9)
    key = ref.removeprefix(world.folder.uri(""))
    world.folder.put(key, replace(world.source.manifest(ref), shards=()).encode())
    with pytest.raises(ManifestParseError, match="somebody has changed the object"):
        cleanup(world.source)
