from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.deadline import epoch_ms
from safewriter.errors import NotCommittedError
from safewriter.objects.store import StoreError
from safewriter.snapshots.errors import PublishConflictError
from safewriter.snapshots.format.current import CURRENT
from safewriter.snapshots.write.publish import Publisher
from safewriter.tables.snapshot.session import SnapshotSession
from safewriter.tables.snapshot.table import name_of
from tests.unit.safewriter.tables.snapshot.bench import WHOLE_MS, Bench

if TYPE_CHECKING:
    from safewriter.record.checkpoints import HeldCheckpoint


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.now_ms = epoch_ms()
    return bench


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lines of the journal."""
    found: list[str] = []
    monkeypatch.setattr("safewriter.record.journal.append", lambda _, what, **more: found.append(what))
    return found


def opened(
    bench: Bench, held: HeldCheckpoint, monkeypatch: pytest.MonkeyPatch, *, latest_start_ms: int | None = None
) -> SnapshotSession:
    """A session in its block, which has begun to write."""
    monkeypatch.setattr("safewriter.tables.spark.SparkScope.__init__", lambda self, *_: setattr(self, "table", "t"))
    monkeypatch.setattr("safewriter.tables.spark.SparkScope.begin_group", lambda *_: None)
    monkeypatch.setattr("safewriter.tables.snapshot.session.open_store", lambda _: bench.lake)
    spark: Any = None
    session = SnapshotSession(spark, "s3://lake/kv")
    session.publisher = Publisher(bench.lake, sleep=lambda _: None)
    opening: Any = SimpleNamespace(document=held.document, latest_start_ms=latest_start_ms, journal="journal")
    session.begin(opening)
    return session


def test_a_build_is_published_once(bench: Bench, monkeypatch: pytest.MonkeyPatch, done: list[str]) -> None:
    """The journal says so before the pointer is sent, and after the manifest is there."""
    held = bench.claim()
    session = opened(bench, held, monkeypatch)
    session.publish()
    assert (done, session.seen().passed) == ([], False)
    session.stage(bench.build(held))
    session.publish()
    session.publish()
    assert done == ["commit_passed"]
    assert (session.seen().passed, session.seen().answered) == (True, True)
    assert list(bench.current.published) == [name_of(held.document.attempt)]


def test_after_the_deadline_nothing_is_published(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, done: list[str]
) -> None:
    """A process may have been frozen until then."""
    held = bench.claim()
    session = opened(bench, held, monkeypatch, latest_start_ms=epoch_ms())
    session.stage(bench.build(held))
    with pytest.raises(NotCommittedError, match="the time for a publication is over"):
        session.publish()
    assert (done, session.seen().passed, bench.lake.get(CURRENT)) == ([], False, None)


def test_a_faster_build_is_an_answer(bench: Bench, monkeypatch: pytest.MonkeyPatch, done: list[str]) -> None:
    """Nothing of this one can arrive any more."""
    held = bench.claim()
    session = opened(bench, held, monkeypatch, latest_start_ms=epoch_ms() + WHOLE_MS)
    bench.publish(bench.claim_other())
    session.stage(bench.build(held))
    with pytest.raises(PublishConflictError):
        session.publish()
    assert (session.seen().passed, session.seen().answered) == (True, True)


def test_a_publication_without_an_answer_is_left_to_the_pointer(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, done: list[str]
) -> None:
    """The block asks again; it does not send it again."""
    held = bench.claim()
    session = opened(bench, held, monkeypatch)
    session.stage(bench.build(held))

    def unanswered(*_: object, **__: object) -> str:
        raise StoreError("no answer")

    monkeypatch.setattr(bench.lake, "create", unanswered)
    monkeypatch.setattr(Publisher, "write_manifest", lambda *_, **__: "s3://lake/m")
    with pytest.raises(StoreError, match="nobody knows whether"):
        session.publish()
    session.publish()
    assert (done, session.seen().passed, session.seen().answered) == (["commit_passed"], True, False)
