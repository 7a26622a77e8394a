"""The session of a guarded build publishes its snapshot at most once, in its turn and before its deadline, and knows
when its tasks have ended.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from safewriter.deadline import epoch_ms
from safewriter.errors import NotCommittedError
from safewriter.objects.store import StoreError
from safewriter.snapshots.errors import ManifestPublishError, PublishConflictError
from safewriter.snapshots.format.current import CURRENT, ManifestAt
from safewriter.snapshots.settle.leftovers import BuildId
from safewriter.snapshots.settle.table import DECIDED_MS, name_of
from safewriter.snapshots.write.gate import entered, gate
from safewriter.snapshots.write.publish import Publisher
from safewriter.snapshots.write.session import BuildScope, SnapshotSession
from tests.unit.safewriter.snapshots.bench import WHOLE_MS, Bench

if TYPE_CHECKING:
    from pathlib import Path

    from safewriter.record.checkpoints import HeldCheckpoint


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.now_ms = epoch_ms()
    return bench


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of the journal."""
    found: list[str] = []
    monkeypatch.setattr("safewriter.record.journal.append", lambda _, what, **more: found.append(what))
    return found


def made(bench: Bench, monkeypatch: pytest.MonkeyPatch, token: int | None = None) -> SnapshotSession:
    """Return a session before its block; `bench.groups` gets its job groups."""
    monkeypatch.setattr("safewriter.tables.spark.SparkScope.__init__", lambda self, *_: setattr(self, "table", "t"))
    monkeypatch.setattr("safewriter.tables.spark.SparkScope.begin_group", lambda _, name: bench.groups.append(name))
    monkeypatch.setattr("safewriter.snapshots.write.session.open_store", lambda _: bench.lake)
    spark: Any = None
    session = SnapshotSession(spark, "s3://lake/kv", BuildId.draw("run", "shards", "runs", bench.now()), token, None)
    session.publisher = Publisher(bench.lake, sleep=lambda _: None)
    return session


def begin(
    session: SnapshotSession, held: HeldCheckpoint, *, latest_start_ms: int | None = None, journal: str | None = "j"
) -> None:
    opening: Any = SimpleNamespace(document=held.document, latest_start_ms=latest_start_ms, journal=journal)
    session.begin(opening)


def opened(bench: Bench, held: HeldCheckpoint, monkeypatch: pytest.MonkeyPatch, **opening: Any) -> SnapshotSession:
    """Return a session in its block, which has begun to write."""
    session = made(bench, monkeypatch)
    begin(session, held, **opening)
    return session


def test_a_build_is_published_once(bench: Bench, monkeypatch: pytest.MonkeyPatch, done: list[str]) -> None:
    """The journal notes it after the manifest is written, and before `_CURRENT` is."""
    held = bench.claim()
    session = opened(bench, held, monkeypatch)
    session.publish()
    assert (done, session.report().passed) == ([], False)
    session.stage(bench.build(held))
    session.publish()
    session.publish()
    assert done == ["commit_passed"]
    assert (session.report().passed, session.report().answered) == (True, True)
    assert list(bench.current.published) == [name_of(held.document.attempt)]


def test_after_the_deadline_nothing_is_published(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, done: list[str]
) -> None:
    """The process may have been frozen until then."""
    held = bench.claim()
    session = opened(bench, held, monkeypatch, latest_start_ms=epoch_ms())
    session.stage(bench.build(held))
    with pytest.raises(NotCommittedError, match="the time for a publication is over"):
        session.publish()
    assert (done, session.report().passed, bench.lake.get(CURRENT)) == ([], False, None)


def test_a_faster_build_is_an_answer(bench: Bench, monkeypatch: pytest.MonkeyPatch, done: list[str]) -> None:
    """No request of this build can land any more."""
    held = bench.claim()
    session = opened(bench, held, monkeypatch, latest_start_ms=epoch_ms() + WHOLE_MS)
    bench.publish(bench.claim_other())
    session.stage(bench.build(held))
    with pytest.raises(PublishConflictError):
        session.publish()
    assert (session.report().passed, session.report().answered) == (True, True)


def test_a_publication_without_an_answer_is_left_to_the_pointer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, done: list[str]
) -> None:
    """The session does not send it again; the settling reads `_CURRENT`."""
    held = bench.claim()
    session = opened(bench, held, monkeypatch)
    session.stage(bench.build(held))
    monkeypatch.setattr(bench.lake, "create", Mock(side_effect=StoreError("no answer")))
    monkeypatch.setattr(Publisher, "write_manifest", lambda *_, **__: ManifestAt("s3://lake/m"))
    with pytest.raises(StoreError, match="nobody knows whether"):
        session.publish()
    session.publish()
    assert (done, session.report().passed, session.report().answered) == (["commit_passed"], True, False)


def test_a_build_that_may_not_write_the_pointer_has_published_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, done: list[str]
) -> None:
    """The store has answered, so no settler needs a right that the build has not."""
    held = bench.claim()
    session = opened(bench, held, monkeypatch)
    session.stage(bench.build(held))
    monkeypatch.setattr(Publisher, "write_manifest", lambda *_, **__: ManifestAt("s3://lake/m"))
    monkeypatch.setattr(bench.lake, "create", Mock(side_effect=StoreError("no right", denied=True)))
    with pytest.raises(ManifestPublishError, match="nothing was published"):
        session.publish()
    assert (session.report().passed, session.report().answered) == (False, True)


def test_a_build_that_is_interrupted_while_it_publishes_has_no_answer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, done: list[str]
) -> None:
    """Its request may still land."""
    held = bench.claim()
    session = opened(bench, held, monkeypatch)
    session.stage(bench.build(held))

    def interrupted(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(Publisher, "point", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.publish()
    assert (session.report().passed, session.report().answered) == (True, False)


@pytest.mark.parametrize("latest_start_ms", [None, 2**62])
def test_no_build_publishes_after_six_days(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, latest_start_ms: int | None, done: list[str]
) -> None:
    """After that, a settler cannot decide by a missing name. The time to write the manifest counts, too."""
    held = bench.claim()
    session = opened(bench, held, monkeypatch, latest_start_ms=latest_start_ms)
    session.stage(bench.build(held))

    def late(*_: object, **__: object) -> ManifestAt:
        monkeypatch.setattr("safewriter.snapshots.write.session.epoch_ms", lambda: epoch_ms() + DECIDED_MS)
        return ManifestAt("s3://lake/m")

    monkeypatch.setattr(Publisher, "write_manifest", late)
    with pytest.raises(NotCommittedError, match="the time for a publication is over"):
        session.publish()
    assert (done, bench.lake.get(CURRENT)) == ([], None)


def test_without_a_supervisor_there_is_no_journal(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, done: list[str]
) -> None:
    """The build is still published."""
    held = bench.claim()
    session = opened(bench, held, monkeypatch, journal=None)
    session.stage(bench.build(held))
    session.publish()
    assert (done, session.report().passed) == ([], True)


def test_a_build_may_have_left_files_once_it_has_begun(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its jobs are in their own group, by which they are cancelled."""
    held = bench.claim()
    session = made(bench, monkeypatch)
    assert (session.has_begun, bench.groups) == (False, [])
    begin(session, held)
    assert (session.has_begun, bench.groups) == (True, [f"safewriter-{name_of(held.document.attempt)}"])
    assert session.may_have_left_files(session.report())


def test_a_build_replaces_what_is_current_when_it_begins(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, done: list[str]
) -> None:
    """The time of its claim does not count: the claim may have waited for an earlier attempt."""
    session = made(bench, monkeypatch)
    assert session.state().version == 0
    bench.publish(bench.claim_other())
    held = bench.claim()
    begin(session, held)
    session.stage(bench.build(held))
    session.publish()
    assert bench.current.version == 2


def test_the_token_of_its_turn_is_there_before_a_build_begins(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then an earlier holder cannot publish, nor can this build after a later holder's has begun."""
    bench.publisher.base(6)
    session = made(bench, monkeypatch, token=7)
    session.state()
    assert bench.current.fencing_token == 7
    bench.publisher.base(8)
    with pytest.raises(PublishConflictError, match="has token 8, and this build has 7"):
        begin(session, bench.claim())


def test_a_build_whose_turn_was_taken_publishes_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, done: list[str]
) -> None:
    """The error names the token of the later turn."""
    held = bench.claim()
    session = made(bench, monkeypatch, token=7)
    begin(session, held)
    session.stage(bench.build(held))
    bench.publisher.base(8)
    with pytest.raises(PublishConflictError, match="has token 8, and this build has 7"):
        session.publish()
    assert bench.current.manifest_ref is None


def test_a_session_says_whether_the_pointer_names_the_write(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim without a document needs this: the bucket may have been emptied."""
    session = made(bench, monkeypatch)
    session.state()
    assert session.named_since(bench.write.key) is None
    bench.publish(bench.claim())
    session.state()
    assert session.named_since(bench.write.key) == 0
    assert session.named_since("sw-" + "f" * 32) is None


# -- the end of a build's tasks ----------------------------------------------------------------------------------------


def scope_of(monkeypatch: pytest.MonkeyPatch, gate: Any, *, is_quiet: bool = True, has_lost: bool) -> BuildScope:
    """Return the scope of a build of which Spark says this."""
    monkeypatch.setattr("safewriter.tables.spark.SparkScope.__init__", lambda *_: None)
    monkeypatch.setattr("safewriter.tables.spark.SparkScope.wait_until_quiet", lambda *_: is_quiet)
    monkeypatch.setattr("safewriter.tables.spark.SparkScope.has_lost_tasks", lambda *_: has_lost)
    unused: Any = None
    return BuildScope(unused, "s3://lake/kv", gate)


@pytest.mark.parametrize("has_lost", [True, False])
@pytest.mark.parametrize("is_quiet", [True, False])
def test_on_other_machines_a_task_that_did_not_end_well_may_still_upload(
    monkeypatch: pytest.MonkeyPatch, *, is_quiet: bool, has_lost: bool
) -> None:
    """Spark does not wait for its process, and nothing tells when that ends."""
    scope = scope_of(monkeypatch, None, is_quiet=is_quiet, has_lost=has_lost)
    scope.shut("the build has failed")
    assert scope.wait_until_quiet(0) is (is_quiet and not has_lost)


@pytest.mark.parametrize("is_quiet", [True, False])
def test_on_this_machine_the_gate_tells_whether_a_task_uploads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_quiet: bool
) -> None:
    """However many tasks Spark has killed; a job that still runs may begin more of them."""
    with gate(str(tmp_path)) as opened:
        scope = scope_of(monkeypatch, opened, is_quiet=is_quiet, has_lost=True)
        with entered(str(opened.path)) as check:
            scope.shut("the build has failed")
            assert not scope.wait_until_quiet(0)
            with pytest.raises(RuntimeError):
                check()
        assert scope.wait_until_quiet(0) is is_quiet
