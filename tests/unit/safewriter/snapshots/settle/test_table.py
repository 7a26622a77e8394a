"""A settler of a snapshot's build finds its verdict in `_CURRENT`, fences it there, and cleans up after it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from safewriter.errors import NotCommittedError, UnknownOutcomeError
from safewriter.objects.store import PreconditionFailed, StoreError
from safewriter.record.document import Status
from safewriter.record.liveness import GRACE_MS
from safewriter.settle.one_write import Action, settle_one
from safewriter.settle.recovery import Cause
from safewriter.settle.sweeper import Look, Sweep, Sweeper
from safewriter.snapshots.errors import PublishConflictError
from safewriter.snapshots.format.current import CURRENT, CURRENT_MAX_BYTES, Current, ManifestAt, Past
from safewriter.snapshots.format.manifest import Manifest
from safewriter.snapshots.settle.leftovers import BuildId, published_key
from safewriter.snapshots.settle.table import name_of
from safewriter.snapshots.write.session import PublicationState
from safewriter.tables.registry import format_of
from safewriter.tables.table import Intent, Landed, Trace, UndecidableError
from tests.unit.safewriter.snapshots.bench import DAY_MS, WHOLE_MS, Bench

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.record.checkpoints import HeldCheckpoint

SENT, UNSENT = PublicationState(passed=True, answered=True), PublicationState(passed=False, answered=True)
KILLED = Intent("killed", undo=False, nothing_sent=False)


def manifest_of(held: HeldCheckpoint) -> str:
    return BuildId.read(held.document.attempt.properties).manifest_key


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize("cause", [Cause.KILLED, Cause.EXCEPTION, Cause.SWEEPER])
def test_a_build_that_was_published_is_committed(bench: Bench, cause: Cause) -> None:
    """This holds for every settler: readers may already have the snapshot."""
    bench.publish(bench.claim())
    document = bench.settle(cause)
    attempt = document.attempt
    assert (document.status, attempt.commit_version, attempt.rows, attempt.bytes) == ("committed", 1, 10, 14)


def test_a_build_that_another_has_replaced_since_is_committed(bench: Bench) -> None:
    """`_CURRENT` keeps its mark."""
    bench.publish(bench.claim())
    bench.publisher.point(
        ManifestAt("s3://lake/other"), bench.build(bench.claim_other()), bench.publisher.base(), attempt="sw-2"
    )
    assert bench.settle().status is Status.COMMITTED


def test_a_build_that_was_not_published_is_fenced_and_rolled_back(bench: Bench) -> None:
    """It cannot publish any more, and the current snapshot is unchanged."""
    bench.publisher.publish(bench.build(bench.claim_other()), bench.publisher.base())
    before = bench.current
    held = bench.claim()
    manifest, base = bench.build(held), bench.publisher.base()
    assert bench.settle().status is Status.ROLLED_BACK
    assert (bench.current.manifest_ref, bench.current.version) == (before.manifest_ref, before.version)
    with pytest.raises(PublishConflictError):
        bench.publisher.point(ManifestAt("s3://lake/late"), manifest, base, attempt=name_of(held.document.attempt))


def test_a_first_build_is_fenced_where_there_is_no_snapshot(bench: Bench) -> None:
    """`_CURRENT` then names no manifest; settling again changes nothing."""
    held = bench.claim()
    assert bench.settle().status is Status.ROLLED_BACK
    assert (bench.current.manifest_ref, set(bench.current.fenced)) == (None, {name_of(held.document.attempt)})
    body = bench.current.encode()
    bench.table().next_move(held.document, KILLED)
    assert bench.current.encode() == body


def test_a_build_that_has_sent_nothing_needs_no_fence(bench: Bench) -> None:
    """No request of it can land."""
    bench.claim()
    assert bench.settle(nothing_sent=True).status is Status.ROLLED_BACK
    assert bench.lake.get(CURRENT) is None


def test_a_publication_that_is_faster_than_the_fence_counts(bench: Bench) -> None:
    """The settler reads `_CURRENT` again."""
    held = bench.claim()
    manifest = bench.build(held)
    create = bench.lake.create

    def raced(key: str, body: bytes, *, tag: str = "") -> str:
        bench.lake.create = create  # type: ignore[method-assign]
        ref = bench.lake.uri(BuildId.read(held.document.attempt.properties).manifest_key)
        bench.publisher.point(ManifestAt(ref), manifest, bench.publisher.base(), attempt=name_of(held.document.attempt))
        return create(key, body, tag=tag)

    bench.lake.create = raced  # type: ignore[method-assign]
    assert bench.settle().status is Status.COMMITTED


def test_a_rehearsal_says_what_it_would_fence(bench: Bench) -> None:
    """It writes nothing."""
    held = bench.claim()
    said: list[str] = []
    bench.table(rehearsal=said).next_move(held.document, KILLED)
    assert said == [f"PUT s3://lake/_CURRENT: {name_of(held.document.attempt)} is fenced"]
    assert bench.lake.get(CURRENT) is None


def test_without_time_nothing_is_asked(bench: Bench) -> None:
    """The settler stops at its own deadline."""
    held = bench.claim()
    with pytest.raises(StoreError, match="in time"):
        bench.table(may_go_on=lambda: False).next_move(held.document, KILLED)


@pytest.mark.parametrize(("age_ms", "decided"), [(6 * DAY_MS, True), (6 * DAY_MS + 1, False)])
def test_a_missing_name_is_a_verdict_for_six_days(bench: Bench, age_ms: int, *, decided: bool) -> None:
    """After that, the name may have been removed."""
    bench.claim()
    bench.now_ms += age_ms
    if decided:
        assert bench.settle().status is Status.ROLLED_BACK
    else:
        with pytest.raises(UnknownOutcomeError, match="may have forgotten"):
            bench.settle()
        assert bench.document.status is Status.UNKNOWN


def test_a_pointer_that_nobody_can_read_decides_nothing(bench: Bench) -> None:
    """The write stays unknown."""
    bench.claim()
    bench.lake.put(CURRENT, b"damaged")
    with pytest.raises(UnknownOutcomeError, match="does not say which snapshot"):
        bench.settle()
    assert bench.document.status is Status.UNKNOWN


def test_a_pointer_that_is_gone_decides_nothing(bench: Bench) -> None:
    """A snapshot was published before, so `_CURRENT` was deleted, with the names of all builds."""
    bench.publish(bench.claim_other())
    bench.publish(bench.claim())
    bench.lake.delete(CURRENT)
    with pytest.raises(UnknownOutcomeError, match="_CURRENT is gone"):
        bench.settle()
    assert bench.lake.get(CURRENT) is None
    assert bench.document.status is Status.UNKNOWN


def test_a_build_whose_document_is_gone_is_found_by_its_retry(bench: Bench) -> None:
    """A second publication would hide a newer snapshot."""
    held = bench.claim()
    bench.publish(held)
    found = bench.table().trace_from(held.document.write_key, 0)
    assert found == Trace(1, Landed(1, 10, 14), 0, succeeded=True, properties=found.properties)
    with pytest.raises(UndecidableError, match="has named this build, and does not any more"):
        bench.table().trace_from("sw-" + "f" * 32, 0)


def test_success_is_confirmed_by_the_pointer(bench: Bench) -> None:
    """A block that has published nothing is not confirmed."""
    held = bench.claim()
    with pytest.raises(NotCommittedError, match="does not know this build"):
        bench.table().confirm(held.document, SENT)
    with pytest.raises(NotCommittedError, match="published no snapshot"):
        bench.table().confirm(held.document, UNSENT)
    other = Bench()
    held = other.claim()
    other.publish(held)
    assert other.table().confirm(held.document, SENT).landed == Landed(1, 10, 14)


def test_of_a_published_build_only_its_losers_are_removed(bench: Bench) -> None:
    """Another build of the same run keeps its objects."""
    held = bench.claim()
    manifest = bench.publish(held)
    names = BuildId.read(held.document.attempt.properties)
    stranger = f"{names.run_prefix}db=00000/attempt=00-{'f' * 16}-a/shard.db"
    bench.lake.put(stranger, b"another build's")
    bench.settle()
    bench.clean()
    kept = {f"{shard.db_url.removeprefix('s3://lake/')}/shard.db" for shard in manifest.shards}
    assert bench.keys() == {CURRENT, names.manifest_key, stranger, *kept}
    assert bench.document.is_finished
    record = bench.record(held)
    assert (record["status"], record["manifest_ref"]) == ("succeeded", bench.lake.uri(names.manifest_key))


def test_of_a_dead_build_nothing_is_left(bench: Bench) -> None:
    """Its manifest and its late objects are removed, too."""
    held = bench.claim()
    bench.build(held)
    bench.settle()
    bench.build(held)
    bench.clean()
    assert bench.keys() == {CURRENT}
    record = bench.record(held)
    assert (record["status"], record["error_type"], record["manifest_ref"]) == ("failed", "Killed", None)
    assert record["lease_expires_at"] == record["updated_at"]


def test_a_record_that_says_how_its_run_ended_stays(bench: Bench) -> None:
    """A build's own record is better evidence; an unreadable record also stays."""
    held = bench.claim()
    bench.build(held)
    names = BuildId.read(held.document.attempt.properties)
    for body in (b'{"status": "failed"}', b"damaged", b"[]", b"{}"):
        bench.lake.put(names.record_key, body)
        names.end_record(bench.lake, bench.now(), published=False)
        found = bench.lake.get(names.record_key)
        assert found is not None
        assert found.body == body


def test_a_retry_s_snapshot_stays_when_the_attempt_before_is_cleaned(bench: Bench) -> None:
    """Both attempts are in one document."""
    before = bench.claim()
    bench.build(before)
    bench.settle()
    held = bench.claim()
    manifest = bench.publish(held)
    bench.build(before)  # lands late
    bench.settle()
    bench.clean()
    names = BuildId.read(held.document.attempt.properties)
    kept = {f"{shard.db_url.removeprefix('s3://lake/')}/shard.db" for shard in manifest.shards}
    assert bench.keys() == {CURRENT, names.manifest_key, *kept}


def test_what_comes_late_of_an_earlier_attempt_goes(bench: Bench) -> None:
    """The write's next clean-up removes objects that landed after the first one."""
    held = bench.claim()
    bench.settle()
    bench.clean()
    bench.build(held)
    bench.claim()
    bench.settle()
    bench.clean()
    assert bench.keys() == {CURRENT}


@pytest.mark.parametrize("same_document", [True, False])
def test_no_clean_up_believes_a_manifest_that_was_changed_after_its_publication(
    bench: Bench, *, same_document: bool
) -> None:
    """`_CURRENT` has its SHA-256. The shards that a changed one leaves out are the current snapshot's."""
    held = bench.claim()
    manifest = bench.publish(held)
    names = BuildId.read(held.document.attempt.properties)
    bench.lake.put(names.manifest_key, replace(manifest, shards=manifest.shards[:1]).encode())
    before, document = bench.keys(), held.document
    if same_document:
        document = replace(document, status=Status.COMMITTED)
    else:
        other = {**document.attempt.properties, "created_at": "2020-01-01T00:00:00+00:00"}
        document = replace(document, attempts=(replace(document.attempt, properties=other),))
    with pytest.raises(UndecidableError, match="is not the manifest that was published"):
        bench.table().remove_leftovers(document, document.attempts)
    assert bench.keys() == before


def test_no_clean_up_believes_a_manifest_that_current_has_forgotten(bench: Bench) -> None:
    """Nothing tells whether it is the published one, so all shards stay: `soal snapshot cleanup` removes the rest."""
    held = bench.claim()
    manifest = bench.publish(held)
    names = BuildId.read(held.document.attempt.properties)
    bench.lake.put(names.manifest_key, replace(manifest, shards=()).encode())
    past = tuple(Past(f"s3://lake/{number}", "2026-11-01T00:00:00Z") for number in range(100))
    bench.lake.put(CURRENT, replace(bench.current, history=past).encode())
    before = bench.keys()
    assert bench.table().remove_leftovers(replace(held.document, status=Status.COMMITTED), held.document.attempts) == 0
    assert bench.keys() == before


def test_a_published_snapshot_that_was_removed_since_has_nothing_to_clean(bench: Bench) -> None:
    """The clean-up that removed its manifest also removes its shards."""
    held = bench.claim()
    bench.publish(held)
    bench.settle()
    bench.lake.delete(BuildId.read(held.document.attempt.properties).manifest_key)
    before = bench.keys()
    bench.clean()
    assert bench.keys() == before


def test_an_attempt_that_died_before_its_claim_has_left_nothing(bench: Bench) -> None:
    """It has no names yet."""
    held = bench.claim()
    bench.build(held)
    nameless = replace(held.document.attempt, properties={})
    before = bench.keys()
    assert bench.table().remove_leftovers(held.document, (nameless,)) == 0
    assert bench.keys() == before


def test_a_clean_up_ends_with_its_time(bench: Bench) -> None:
    """The error says how many objects were removed."""
    held = bench.claim()
    bench.build(held)
    with pytest.raises(StoreError, match="out of time while cleaning up, 1 removed so far"):
        bench.table(may_go_on=lambda: False).remove_leftovers(
            held.document, held.document.attempts, dead_nonce=held.document.owner
        )


def test_a_build_that_a_false_document_calls_rolled_back_is_fenced_before_its_shards_go(bench: Bench) -> None:
    """It may be alive; it cannot publish shards that are gone."""
    held = bench.claim()
    manifest, base = bench.build(held), bench.publisher.base()
    false = held.document.moved(Status.ROLLED_BACK, reason="nothing was published", settled_ms=1, settled_by="killed")
    bench.checkpoints.replace(held, false)

    assert bench.recovery().clean(held.document.write_key) > 0

    with pytest.raises(PublishConflictError):
        bench.publisher.point(ManifestAt("s3://lake/late"), manifest, base, attempt=name_of(held.document.attempt))


def test_a_pointer_that_never_stands_still_decides_nothing(bench: Bench) -> None:
    """The settler gives up, and a later one tries again."""
    held = bench.claim()

    def raced(*_: object, **__: object) -> str:
        raise PreconditionFailed(CURRENT)

    bench.lake.create = raced  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="could not be fenced off in time"):
        bench.table().next_move(held.document, KILLED)


def test_a_build_without_a_document_is_known_by_its_names(bench: Bench) -> None:
    """Its marks and fences have its epoch; the names of other writes do not count."""
    assert bench.table().trace(bench.write.key, bench.now_ms) is None
    bench.claim()
    bench.settle()
    assert bench.table().trace(bench.write.key, bench.now_ms) == Trace(1)
    bench.publish(held := bench.claim())
    found = Trace(2, Landed(1, 10, 14), 0, succeeded=True, properties={"manifest": manifest_of(held)})
    assert bench.table().trace(bench.write.key, bench.now_ms) == found
    assert bench.table().trace("sw-ffffffffffff", bench.now_ms) is None


def test_of_several_attempts_without_a_document_the_last_one_counts(bench: Bench) -> None:
    """This holds for fenced and for published attempts."""
    for _ in range(2):
        bench.claim()
        bench.settle()
    assert bench.table().trace(bench.write.key, bench.now_ms) == Trace(2)
    manifest = bench.publish(bench.claim())
    later = f"{bench.write.key}-9-{'0' * 16}"
    bench.lake.put("later", b"a manifest")
    bench.publisher.point(ManifestAt("s3://lake/later"), manifest, bench.publisher.base(), attempt=later)
    found = Trace(9, Landed(2, 10, 14), 1, succeeded=True, properties={"manifest": "later"})
    assert bench.table().trace(bench.write.key, bench.now_ms) == found


@pytest.mark.parametrize("by", ["retry", "sweeper"])
def test_a_build_without_a_document_is_found_with_its_manifest(bench: Bench, by: str) -> None:
    """Also a retry that comes when `_CURRENT` has forgotten the mark gets the snapshot, and no clean-up harms it."""
    first = bench.claim()
    bench.publish(first)
    bench.bucket.delete(f"checkpoints/{bench.write.key}.json")
    before = bench.keys()
    if by == "retry":
        bench.claim()
    else:
        bench.now_ms += DAY_MS
        found = settle_one(bench.checkpoints, bench.recovery(), bench.write.key, Cause.SWEEPER, bench.clock)
        assert found.action is Action.SETTLED
    bench.clean()

    assert bench.document.status is Status.COMMITTED
    assert published_key(bench.document.attempt.properties) == manifest_of(first)
    assert bench.keys() == before


@pytest.mark.parametrize(("age_ms", "decided"), [(6 * DAY_MS, True), (6 * DAY_MS + 1, False)])
def test_a_missing_name_tells_nothing_of_an_old_build_without_a_document(
    bench: Bench, age_ms: int, *, decided: bool
) -> None:
    """`_CURRENT` may have lost the name."""
    if decided:
        assert bench.table().trace(bench.write.key, bench.now_ms - age_ms) is None
    else:
        with pytest.raises(UndecidableError, match="may have forgotten"):
            bench.table().trace(bench.write.key, bench.now_ms - age_ms)


def test_a_prefix_is_named_as_a_table_is() -> None:
    """All spellings of its path give one name."""
    parse: Callable[[str], object] = format_of("snapshot").parse
    assert str(parse("s3a://lake//kv/")) == str(parse("s3://lake/kv")) == "s3://lake/kv"


def test_a_pointer_that_is_too_large_decides_nothing() -> None:
    """If it is too large to read, or to add a fence, the verdict is unknown, and it is not changed."""
    body = json.dumps({"manifest_ref": None, "run_id": "r" * (CURRENT_MAX_BYTES - 90), "updated_at": "x"})
    for size, told in ((CURRENT_MAX_BYTES, "cannot be fenced off"), (CURRENT_MAX_BYTES + 1, "bytes, more than")):
        bench = Bench()
        bench.claim()
        bench.lake.put(CURRENT, body.ljust(size).encode())
        with pytest.raises(UnknownOutcomeError, match=told):
            bench.settle()
        assert bench.document.status is Status.UNKNOWN
        found = bench.lake.get(CURRENT)
        assert found is not None
        assert found.body == body.ljust(size).encode()


@pytest.mark.parametrize("when", ["before the verdict", "after the verdict"])
def test_a_damaged_manifest_changes_no_verdict(bench: Bench, when: str) -> None:
    """The failed clean-up is reported, and after seven days the write's marker is removed, as for other failures."""
    held = bench.claim()
    bench.publish(held)
    if when == "after the verdict":
        assert bench.settle().status is Status.COMMITTED
    bench.lake.put(BuildId.read(held.document.attempt.properties).manifest_key, b"SQLite format 3\0" + b"x" * 5000)
    if when == "before the verdict":
        assert bench.settle().status is Status.COMMITTED
    bench.now_ms += WHOLE_MS + GRACE_MS + 1
    (look,) = sweep(bench).looks
    assert (look.action, look.status) == (Action.UNCLEAN, Status.COMMITTED)
    assert "is no manifest that this code can read" in (look.problem or "")
    bench.now_ms += 8 * DAY_MS
    sweep(bench)
    assert sweep(bench).looks == ()


def test_a_bug_in_a_clean_up_changes_no_verdict(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any exception is handled, for the settler and for the sweeper."""

    def broken(*_: object, **__: object) -> int:
        raise RuntimeError("bug")

    monkeypatch.setattr("safewriter.snapshots.settle.table.SnapshotTable.remove_leftovers", broken)
    bench.publish(bench.claim())
    assert bench.settle().status is Status.COMMITTED
    bench.now_ms += WHOLE_MS + GRACE_MS + 1
    (look,) = sweep(bench).looks
    assert (look.action, look.problem) == (Action.UNCLEAN, "RuntimeError('bug')")


def sweep(bench: Bench) -> Sweep:
    told: list[Look] = []
    Sweeper(bench.checkpoints, bench.recovery(), bench.clock, lambda: True, threads=1, on_look=told.append).sweep()
    return Sweep(tuple(told))


@pytest.mark.parametrize("what", ["version", "rows", "bytes", "at_ms"])
def test_a_mark_with_a_number_of_no_build_decides_nothing(bench: Bench, what: str) -> None:
    """The checkpoint document stays readable, with the status unknown."""
    held = bench.claim()
    bench.publish(held)
    told = json.loads(bench.current.encode())
    told["published"][name_of(held.document.attempt)][what] = 2**70
    bench.lake.put(CURRENT, json.dumps(told).encode())
    with pytest.raises(UnknownOutcomeError, match="does not say which snapshot is current"):
        bench.settle()
    assert bench.document.status is Status.UNKNOWN


def changed(bench: Bench, **members: object) -> None:
    """Change `_CURRENT` from outside."""
    bench.lake.put(CURRENT, json.dumps(json.loads(bench.current.encode()) | members).encode())


def other_builds(bench: Bench, number: int) -> None:
    manifest = bench.build(bench.claim_other())
    for _ in range(number):
        bench.publisher.point(ManifestAt("s3://lake/other"), manifest, bench.publisher.base())


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("fenced", [False, True])
def test_a_build_that_readers_have_had_is_not_rolled_back(bench: Bench, *, replaced: bool, fenced: bool) -> None:
    """Its mark was removed from outside, but `_CURRENT` or its history names its manifest, so everything stays."""
    held = bench.claim()
    bench.publish(held)
    if replaced:
        other_builds(bench, 1)
    changed(bench, published={}, fenced={name_of(held.document.attempt): bench.now_ms} if fenced else {})
    before = bench.keys()
    with pytest.raises(UnknownOutcomeError, match="and has not its mark"):
        bench.settle()
    bench.clean()
    assert (bench.document.status, bench.keys()) == (Status.UNKNOWN, before)


@pytest.mark.parametrize("has_manifest", [False, True])
def test_a_mark_alone_commits_nothing(bench: Bench, *, has_manifest: bool) -> None:
    """The mark was set from outside: nothing was published."""
    held = bench.claim()
    names = BuildId.read(held.document.attempt.properties)
    if has_manifest:
        bench.build(held)
    mark = {"version": 1, "manifest_ref": bench.lake.uri(names.manifest_key), "rows": 1, "bytes": 1, "at_ms": 1}
    bench.lake.put(CURRENT, Current.absent(bench.now()).encode())
    changed(bench, published={name_of(held.document.attempt): mark})
    with pytest.raises(UndecidableError, match="neither is current nor was"):
        bench.table().trace(held.document.write_key, bench.now_ms)
    with pytest.raises(UnknownOutcomeError, match="neither is current nor was"):
        bench.settle()
    assert bench.document.status is Status.UNKNOWN


@pytest.mark.parametrize("ref", ["s3://lake/strange", "s3://elsewhere/m"])
def test_a_mark_that_names_another_manifest_commits_nothing(bench: Bench, ref: str) -> None:
    """A build publishes its own manifest."""
    held = bench.claim()
    bench.publish(held)
    name = name_of(held.document.attempt)
    mark = json.loads(bench.current.encode())["published"][name]
    changed(bench, published={name: mark | {"manifest_ref": ref}})
    with pytest.raises(UnknownOutcomeError, match="neither is current nor was"):
        bench.settle()


def test_a_mark_without_its_manifest_commits_nothing(bench: Bench) -> None:
    """The manifest is a witness of an existing snapshot."""
    held = bench.claim()
    bench.publish(held)
    bench.lake.delete(BuildId.read(held.document.attempt.properties).manifest_key)
    with pytest.raises(UnknownOutcomeError, match="which is not there"):
        bench.settle()
    assert bench.document.status is Status.UNKNOWN


def test_a_mark_counts_after_a_hundred_later_publications(bench: Bench) -> None:
    """By then, the manifest is not in the history any more."""
    bench.publish(bench.claim())
    other_builds(bench, 100)
    assert bench.settle().status is Status.COMMITTED


@pytest.mark.parametrize("status", [Status.ROLLED_BACK, Status.COMMITTED])
def test_no_clean_up_deletes_shards_that_another_manifest_of_the_run_names(bench: Bench, status: Status) -> None:
    """A document that says another moment of the build names another manifest, or none."""
    held = bench.claim()
    bench.publish(held)
    names = BuildId.read(held.document.attempt.properties)
    false = replace(names, created_at="2020-01-01T00:00:00+00:00")
    manifest = bench.lake.get(names.manifest_key)
    assert manifest is not None
    published = Manifest.decode(manifest.body, "m")
    bench.lake.put(false.manifest_key, replace(published, shards=published.shards[:1]).encode())
    before = bench.keys()
    attempt = replace(held.document.attempt, properties={**held.document.attempt.properties, **false.document()})
    document = replace(held.document, status=status, attempts=(attempt,))
    with pytest.raises(UndecidableError, match=r"names shards of build|does not name"):
        bench.table().remove_leftovers(document, document.attempts)
    assert bench.keys() == before


def test_a_later_build_of_the_run_may_have_taken_over_shards(bench: Bench) -> None:
    """They stay, and so does the verdict; what the first build has lost goes."""
    held = bench.claim()
    manifest = bench.publish(held)
    bench.settle()
    later = replace(manifest, created_at="2030-01-01T00:00:00+00:00", shards=manifest.shards[1:])
    bench.publisher.publish(later, bench.publisher.base())
    bench.clean()
    assert bench.document.status is Status.COMMITTED
    folders = {key.rpartition("/")[0] for key in sorted(bench.keys()) if key.startswith("shards/")}
    assert folders == {url.removeprefix(bench.lake.uri("")) for url in manifest.folders}


def test_no_clean_up_deletes_what_the_pointer_names(bench: Bench) -> None:
    """This holds for any document, for example if a person has set its verdict."""
    held = bench.claim()
    bench.publish(held)
    before = bench.keys()
    document = held.document.moved(Status.ROLLED_BACK, reason="by hand", settled_ms=1, settled_by="by hand")
    with pytest.raises(UndecidableError, match="nothing of it is deleted"):
        bench.table().remove_leftovers(document, document.attempts)
    assert bench.keys() == before


def test_the_reason_of_a_verdict_has_a_bound(bench: Bench) -> None:
    """The error and the log have the same bound, whatever `_CURRENT` says."""
    bench.claim()
    history = [{"manifest_ref": "s3://lake/x", "at": "Z" + "A" * 2_000_000}]
    bench.lake.put(
        CURRENT, json.dumps(json.loads(Current.absent(bench.now()).encode()) | {"history": history}).encode()
    )
    with pytest.raises(UnknownOutcomeError) as told:
        bench.settle()
    assert len(str(told.value)) < 10_000
    assert len(bench.document.reason or "") < 10_000
    assert len(bench.document.moved(Status.COMMITTED, reason="x" * 10**6).reason or "") < 10_000
