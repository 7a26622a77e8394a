"""A build publishes its snapshot by moving `_CURRENT`: lost answers, conflicts, tokens of turns, fences."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from safewriter.objects.store import PreconditionFailed, StoreError
from safewriter.snapshots.errors import ManifestPublishError, PublishConflictError, PublishCurrentError
from safewriter.snapshots.format.current import CURRENT, Current, ManifestAt
from safewriter.snapshots.format.manifest import MANIFEST_MAX_BYTES, Manifest
from safewriter.snapshots.write.publish import Publisher
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.snapshots.format.test_manifest import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Callable


class Store(MemoryObjectStore):
    """A bucket whose next writes of `_CURRENT` have no answer: they land (`lost`), or do not (`refused`), or that
    the store denies (`denied`).
    """

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.before: Callable[[], object] = lambda: None

    def create(self, key: str, body: bytes, *, tag: str = "") -> str:
        return self._faulty(key, lambda: super(Store, self).create(key, body, tag=tag))

    def replace(self, key: str, body: bytes, *, etag: str, tag: str = "") -> str:
        return self._faulty(key, lambda: super(Store, self).replace(key, body, etag=etag, tag=tag))

    def _faulty(self, key: str, write: Callable[[], str]) -> str:
        fault = self.faults.pop(0) if key == CURRENT and self.faults else ""
        if fault == "denied":
            raise StoreError("no right", denied=True)
        if fault == "refused":
            raise StoreError("no answer")
        written = write()
        if fault == "lost":
            raise StoreError("no answer")
        return written


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def publisher(store: Store, pauses: list[float]) -> Publisher:
    return Publisher(store, sleep=pauses.append)


def run(name: str) -> Manifest:
    return replace(MANIFEST, run_id=name)


def current(store: Store) -> Current:
    found = store.get(CURRENT)
    assert found is not None
    return Current.decode(found.body, CURRENT)


def test_a_manifest_is_there_before_it_is_current(store: Store, publisher: Publisher) -> None:
    """This holds for the first snapshot, and for the next one."""
    for name in ("first", "second"):
        ref = publisher.publish(run(name), publisher.base())
        assert (current(store).manifest_ref, current(store).run_id) == (ref, name)
        found = store.get(ref.removeprefix("s3://memory/"))
        assert found is not None
        assert Manifest.decode(found.body, ref) == run(name)


@pytest.mark.parametrize("is_first", [True, False])
def test_an_older_finisher_is_told_so(
    store: Store, publisher: Publisher, pauses: list[float], *, is_first: bool
) -> None:
    """It raises at once, since another build has published meanwhile. Its manifest stays for the caller to remove."""
    if not is_first:
        publisher.publish(run("before"), publisher.base())
    base = publisher.base()
    publisher.publish(run("faster"), publisher.base())
    with pytest.raises(PublishConflictError, match="has changed since this build began") as refused:
        publisher.publish(run("slower"), base)
    assert current(store).run_id == "faster"
    assert refused.value.manifest_ref is not None
    assert store.get(refused.value.manifest_ref.removeprefix("s3://memory/")) is not None
    assert pauses == []


@pytest.mark.parametrize("fault", ["lost", "refused"])
def test_a_pointer_whose_answer_is_lost_is_written_again(
    store: Store, publisher: Publisher, pauses: list[float], fault: str
) -> None:
    """It is retried after one, two and four seconds; a write that had landed is no conflict."""
    publisher.publish(run("before"), publisher.base())
    store.faults = [fault] * 3
    publisher.publish(run("now"), publisher.base())
    assert current(store).run_id == "now"
    assert pauses == ([1.0] if fault == "lost" else [1.0, 2.0, 4.0])


def test_a_pointer_that_nobody_answers_for_is_no_success(store: Store, publisher: Publisher) -> None:
    """The error names the manifest."""
    store.faults = ["refused"] * 4
    with pytest.raises(PublishCurrentError, match="nobody knows whether") as failed:
        publisher.publish(run("now"), publisher.base())
    assert failed.value.manifest_ref.endswith("_run_id=now/manifest")


def test_a_lower_token_is_refused(store: Store, publisher: Publisher) -> None:
    """Another job has had its turn since; a build without a token keeps the stored one."""
    publisher.publish(run("seventh"), publisher.base(), token=7)
    with pytest.raises(PublishConflictError, match="has token 7, and this build has 6"):
        publisher.publish(run("sixth"), publisher.base(), token=6)
    publisher.publish(run("without"), publisher.base())
    assert (current(store).run_id, current(store).fencing_token) == ("without", 7)
    publisher.publish(run("eighth"), publisher.base(), token=8)
    assert current(store).fencing_token == 8


def test_a_holder_that_thaws_publishes_nothing_in_another_job_s_turn(store: Store, publisher: Publisher) -> None:
    """The next build has written its token at its start, which the frozen one does not know."""
    publisher.publish(run("before"), publisher.base(5), token=5)
    frozen = publisher.base(6)
    following = publisher.base(7)
    with pytest.raises(PublishConflictError, match="has token 7, and this build has 6"):
        publisher.publish(run("frozen"), frozen, token=6)
    with pytest.raises(PublishConflictError, match="has token 7, and this build has 6"):
        publisher.base(6)
    assert (current(store).run_id, current(store).fencing_token) == ("before", 7)
    publisher.publish(run("following"), following, token=7)
    assert current(store).run_id == "following"


def test_a_token_is_there_once(store: Store, publisher: Publisher) -> None:
    """A second build in the same turn does not write `_CURRENT`."""
    publisher.publish(run("before"), publisher.base(5), token=5)
    assert publisher.base(5) == publisher.base(5) == publisher.base()


def test_a_pointer_that_changes_meanwhile_is_read_again(store: Store, publisher: Publisher) -> None:
    """It is retried until the token is written."""
    publisher.publish(run("before"), publisher.base())
    replaced = store.replace

    def raced(key: str, body: bytes, *, etag: str, tag: str = "") -> str:
        store.replace = replaced  # type: ignore[method-assign]
        publisher.publish(run("meanwhile"), publisher.base())
        return replaced(key, body, etag=etag, tag=tag)

    store.replace = raced  # type: ignore[method-assign]
    base = publisher.base(3)
    assert base.current is not None
    assert (base.current.run_id, base.current.fencing_token) == ("meanwhile", 3)


def test_fences_and_tokens_of_others_do_not_stop_a_build(store: Store, publisher: Publisher) -> None:
    """A settler fences a dead neighbour while this build runs: the current snapshot is unchanged."""
    publisher.publish(run("before"), publisher.base())
    base = publisher.base()
    now = current(store)
    found = store.get(CURRENT)
    assert found is not None
    store.replace(CURRENT, now.changed(fenced=now.with_fence("sw-1-1-dead", 1)).encode(), etag=found.etag)
    publisher.point(ManifestAt("s3://memory/m"), run("now"), base, attempt="sw-2-1-alive")
    assert (current(store).run_id, set(current(store).fenced)) == ("now", {"sw-1-1-dead"})


def test_a_fenced_attempt_publishes_nothing(store: Store, publisher: Publisher) -> None:
    """A settler has decided that it failed."""
    publisher.publish(run("before"), publisher.base())
    base = publisher.base()
    now = current(store)
    assert base.etag is not None
    store.replace(CURRENT, now.changed(fenced=now.with_fence("sw-1-1-a", 1)).encode(), etag=base.etag)
    with pytest.raises(PublishConflictError, match="has changed since this build began"):
        publisher.point(ManifestAt("s3://memory/m"), run("late"), base, attempt="sw-1-1-a")
    assert current(store).run_id == "before"


def test_a_first_build_is_fenced_before_there_is_a_snapshot(store: Store, publisher: Publisher) -> None:
    """`_CURRENT` names no manifest then, and the next build publishes the first snapshot."""
    base = publisher.base()
    store.create(CURRENT, Current.absent(publisher.now()).changed(fenced={"sw-1-1-a": 1}).encode())
    with pytest.raises(PublishConflictError):
        publisher.point(ManifestAt("s3://memory/m"), run("late"), base, attempt="sw-1-1-a")
    assert current(store).manifest_ref is None
    publisher.publish(run("next"), publisher.base())
    assert (current(store).run_id, current(store).version) == ("next", 1)


@pytest.mark.parametrize("attempt", ["sw-2-1-alive", None])
def test_a_publication_that_landed_without_an_answer_is_known_behind_a_fence(
    store: Store, publisher: Publisher, attempt: str | None
) -> None:
    """A settler has fenced a neighbour before the retry: the build does not conflict with itself."""
    publisher.publish(run("before"), publisher.base())

    def fence(*_: object) -> None:
        found = store.get(CURRENT)
        assert found is not None
        now = Current.decode(found.body, CURRENT)
        store.put(CURRENT, now.changed(fenced=now.with_fence("sw-1-1-dead", 1)).encode())

    store.faults = ["lost"]
    Publisher(store, sleep=fence).point(ManifestAt("s3://memory/m"), run("now"), publisher.base(), attempt=attempt)
    assert (current(store).run_id, current(store).version) == ("now", 2)


def test_a_publication_that_landed_without_an_answer_is_known_behind_another_one(
    store: Store, publisher: Publisher
) -> None:
    """`_CURRENT` keeps the attempt's mark."""
    publisher.publish(run("before"), publisher.base())
    store.faults = ["lost"]

    def follow(_: float) -> None:
        publisher.publish(run("next"), publisher.base())

    Publisher(store, sleep=follow).point(
        ManifestAt("s3://memory/m"), run("now"), publisher.base(), attempt="sw-2-1-alive"
    )
    assert (current(store).run_id, current(store).version) == ("next", 3)
    assert current(store).published["sw-2-1-alive"].manifest_ref == "s3://memory/m"


def test_a_build_outside_turns_gives_way_to_a_turn(store: Store, publisher: Publisher) -> None:
    """The job in the turn relies on its exclusive access."""
    publisher.publish(run("before"), publisher.base())
    base = publisher.base()
    publisher.base(1)
    with pytest.raises(PublishConflictError, match="another job has had a turn"):
        publisher.publish(run("outside"), base)
    assert current(store).run_id == "before"


def test_a_manifest_that_cannot_be_written_publishes_nothing(store: Store, publisher: Publisher) -> None:
    """It raises `ManifestPublishError`."""
    manifest = run("now")
    base = publisher.base()
    key = publisher.publish(manifest, base).removeprefix("s3://memory/")
    store.put(key, b"another build's")
    with pytest.raises(ManifestPublishError, match="is not this build's manifest"):
        publisher.publish(manifest, publisher.base())


def test_a_publication_without_an_answer_is_known_behind_another_one(store: Store, publisher: Publisher) -> None:
    """Another build has published after it, before its retry: none of its objects may be removed."""
    publisher.publish(run("before"), publisher.base())

    def publish_another(*_: object) -> None:
        store.faults = []
        publisher.publish(run("another"), publisher.base())

    store.faults = ["lost"]
    Publisher(store, sleep=publish_another).publish(run("now"), publisher.base())
    assert current(store).run_id == "another"
    assert [past.manifest_ref.split("=")[-1] for past in current(store).history] == [
        "another/manifest",
        "now/manifest",
        "before/manifest",
    ]


def test_a_snapshot_that_was_current_before_is_no_lost_answer(store: Store, publisher: Publisher) -> None:
    """A rollback to it raises if another build has published meanwhile."""
    old = publisher.publish(run("old"), publisher.base())
    publisher.publish(run("new"), publisher.base())
    base = publisher.base()
    publisher.publish(run("meanwhile"), publisher.base())
    with pytest.raises(PublishConflictError):
        publisher.point(ManifestAt(old), run("old"), base)
    assert current(store).run_id == "meanwhile"


def test_a_snapshot_that_was_gone_back_to_meanwhile_counts_as_another(store: Store, publisher: Publisher) -> None:
    """The same manifest as at the build's start is current, but by a later publication."""
    ref = publisher.publish(run("before"), publisher.base())
    base = publisher.base()
    publisher.publish(run("meanwhile"), publisher.base())
    publisher.point(ManifestAt(ref), run("before"), publisher.base())
    with pytest.raises(PublishConflictError, match="has changed since this build began"):
        publisher.publish(run("slower"), base)
    assert current(store).run_id == "before"


def test_a_pointer_of_another_program_counts_as_another(store: Store, publisher: Publisher) -> None:
    """Such a `_CURRENT` does not count publications."""
    told = {"run_id": "r", "updated_at": "2026-11-22T00:00:00.000000Z"}
    store.put(CURRENT, json.dumps({**told, "manifest_ref": "s3://memory/one"}).encode())
    base = publisher.base()
    store.put(CURRENT, json.dumps({**told, "manifest_ref": "s3://memory/other"}).encode())
    with pytest.raises(PublishConflictError, match="has changed since this build began"):
        publisher.publish(run("slower"), base)
    assert current(store).manifest_ref == "s3://memory/other"


def test_a_pointer_that_never_stands_still_is_given_up(
    store: Store, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds at the start of a build, and for its publication."""
    publisher.publish(run("before"), publisher.base())
    base = publisher.base()

    def raced(*_: object, **__: object) -> str:
        raise PreconditionFailed(CURRENT)

    monkeypatch.setattr(store, "replace", raced)
    with pytest.raises(StoreError, match="changes faster than it can be written"):
        publisher.base(7)
    with pytest.raises(PublishConflictError, match="changes faster than it can be written"):
        publisher.publish(run("now"), base)


@pytest.mark.parametrize("fault", ["lost", "refused"])
def test_a_manifest_whose_answer_is_lost_is_written_again(
    store: Store, publisher: Publisher, pauses: list[float], monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """It is retried like `_CURRENT`."""
    create = store.create

    def unanswered(key: str, body: bytes, *, tag: str = "") -> str:
        monkeypatch.undo()
        if fault == "lost":
            create(key, body, tag=tag)
        raise StoreError("no answer")

    monkeypatch.setattr(store, "create", unanswered)
    publisher.publish(run("now"), publisher.base())
    assert (current(store).run_id, pauses) == ("now", [1.0])


def test_a_manifest_that_goes_meanwhile_is_not_published(
    store: Store, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write finds it, and it is gone before the comparison."""

    def there(key: str, *_: object, **__: object) -> str:
        raise PreconditionFailed(key)

    monkeypatch.setattr(store, "create", there)
    with pytest.raises(ManifestPublishError, match="is not this build's manifest"):
        publisher.publish(run("now"), publisher.base())


def test_a_pointer_that_may_not_be_written_is_not_tried_again(
    store: Store, publisher: Publisher, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting does not grant a missing permission."""

    def denied(*_: object, **__: object) -> str:
        raise StoreError("no right", denied=True)

    monkeypatch.setattr(store, "create", denied)
    with pytest.raises(ManifestPublishError, match="no right"):
        publisher.publish(run("now"), publisher.base())
    assert pauses == []


@pytest.mark.parametrize("is_first", [True, False])
def test_a_pointer_that_may_not_be_written_means_that_nothing_was_published(
    store: Store, publisher: Publisher, pauses: list[float], *, is_first: bool
) -> None:
    """The manifest may be written, and `_CURRENT` not: the store's refusal is an answer, and is told as one."""
    if not is_first:
        publisher.publish(run("before"), publisher.base())
    store.faults = ["denied"]
    with pytest.raises(ManifestPublishError, match=r"nothing was published.*no right"):
        publisher.publish(run("now"), publisher.base())
    assert pauses == []


def test_a_refusal_after_a_lost_answer_says_nothing(store: Store, publisher: Publisher) -> None:
    """The first request may have landed, or may land yet."""
    base = publisher.base()
    store.faults = ["refused", "denied"]
    with pytest.raises(PublishCurrentError, match="no right"):
        publisher.publish(run("now"), base)


def test_a_manifest_that_nobody_could_read_is_not_published(store: Store, publisher: Publisher) -> None:
    """Readers refuse, for example, deeply nested values."""
    deep = replace(MANIFEST, custom={"a": json.loads("[" * 200 + "]" * 200)})
    with pytest.raises(ManifestPublishError, match=r"nobody could read the manifest.*more than 100 deep"):
        publisher.publish(deep, publisher.base())
    assert list(store.list("")) == []


def test_what_is_too_large_to_be_read_is_not_published(store: Store, publisher: Publisher) -> None:
    """This holds for a manifest, and for `_CURRENT` with the names of a week's builds."""
    large = replace(MANIFEST, custom={"text": "x" * MANIFEST_MAX_BYTES})
    with pytest.raises(ManifestPublishError, match=r"would have [\d,]+ bytes.*Take fewer shards"):
        publisher.publish(large, publisher.base())
    assert list(store.list("")) == []
    full = Current.absent(datetime.now(UTC)).changed(fenced={f"sw-{n}-{'0' * 290}": 1 for n in range(7_000)})
    with pytest.raises(ManifestPublishError, match=r"_CURRENT would have [\d,]+ bytes.*Build less often"):
        full.encode()
