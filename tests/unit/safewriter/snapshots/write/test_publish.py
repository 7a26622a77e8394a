from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from safewriter.objects.store import StoreError
from safewriter.snapshots.errors import PublishConflictError, PublishCurrentError
from safewriter.snapshots.format.current import CURRENT, Current
from safewriter.snapshots.format.manifest import Manifest
from safewriter.snapshots.write.publish import Publisher
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.snapshots.format.test_manifest import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Callable


class Store(MemoryObjectStore):
    """A bucket whose next writes of `_CURRENT` have no answer: they land (`lost`), or do not (`refused`)."""

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
    """The first snapshot, and one after it."""
    for name in ("first", "second"):
        ref = publisher.publish(run(name), publisher.base())
        assert (current(store).manifest_ref, current(store).run_id) == (ref, name)
        found = store.get(ref.removeprefix("s3://memory/"))
        assert found is not None
        assert Manifest.decode(found.body, ref) == run(name)


@pytest.mark.parametrize("is_first", [True, False])
def test_an_older_finisher_is_told_so(store: Store, publisher: Publisher, *, is_first: bool) -> None:
    """Another build has published since it began; its manifest stays, for a rollback to it."""
    if not is_first:
        publisher.publish(run("before"), publisher.base())
    base = publisher.base()
    publisher.publish(run("faster"), publisher.base())
    with pytest.raises(PublishConflictError, match="has changed since this build began") as refused:
        publisher.publish(run("slower"), base)
    assert current(store).run_id == "faster"
    assert refused.value.manifest_ref is not None
    assert store.get(refused.value.manifest_ref.removeprefix("s3://memory/")) is not None


@pytest.mark.parametrize("fault", ["lost", "refused"])
def test_a_pointer_whose_answer_is_lost_is_written_again(
    store: Store, publisher: Publisher, pauses: list[float], fault: str
) -> None:
    """After one, two and four seconds; one that had landed is no conflict with itself."""
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
    """Another job has had its turn since; the token of a snapshot without one stays."""
    publisher.publish(run("seventh"), publisher.base(), token=7)
    with pytest.raises(PublishConflictError, match="has token 7, and this build has 6"):
        publisher.publish(run("sixth"), publisher.base(), token=6)
    publisher.publish(run("without"), publisher.base())
    assert (current(store).run_id, current(store).fencing_token) == ("without", 7)
    publisher.publish(run("eighth"), publisher.base(), token=8)
    assert current(store).fencing_token == 8


def test_a_holder_that_thaws_publishes_nothing_in_another_job_s_turn(store: Store, publisher: Publisher) -> None:
    """The next build has put its token there when it began; the frozen one does not know that."""
    publisher.publish(run("before"), publisher.base(5), token=5)
    frozen = publisher.base(6)
    following = publisher.base(7)
    with pytest.raises(PublishConflictError, match="has changed since this build began"):
        publisher.publish(run("frozen"), frozen, token=6)
    with pytest.raises(PublishConflictError, match="has token 7, and this build has 6"):
        publisher.base(6)
    assert (current(store).run_id, current(store).fencing_token) == ("before", 7)
    publisher.publish(run("following"), following, token=7)
    assert current(store).run_id == "following"


def test_a_token_is_there_once(store: Store, publisher: Publisher) -> None:
    """Two builds of one turn change nothing for each other."""
    publisher.publish(run("before"), publisher.base(5), token=5)
    assert publisher.base(5) == publisher.base(5) == publisher.base()


def test_a_pointer_that_changes_meanwhile_is_read_again(store: Store, publisher: Publisher) -> None:
    """Until the token is there."""
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
