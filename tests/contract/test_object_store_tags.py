"""The tag of an object on S3, which allows its expiry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.objects import StoreError
from soal.testing.s3 import Match, Refuse
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from tests.contract.bench import Bench


def test_a_tag_belongs_to_one_writing_of_an_object(s3: Bench) -> None:
    """A later write without the tag removes it."""

    def tags() -> list[tuple[str, str]]:
        found = s3.observer.get_object_tagging(Bucket=s3.lake, Key="a")["TagSet"]
        return [(tag["Key"], tag["Value"]) for tag in found]

    store = s3.store()
    memory = MemoryObjectStore()
    first = store.create("a", b"1", tag="soal=finished")
    assert memory.create("a", b"1", tag="soal=finished") == first
    assert (tags(), memory.tags["a"]) == ([("soal", "finished")], "soal=finished")
    second = store.replace("a", b"2", etag=first)
    assert memory.replace("a", b"2", etag=first) == second
    assert (tags(), memory.tags["a"]) == ([], "")
    store.replace("a", b"3", etag=second, tag="soal=finished")
    memory.replace("a", b"3", etag=second, tag="soal=finished")
    assert (tags(), memory.tags["a"]) == ([("soal", "finished")], "soal=finished")
    assert store.put("a", b"4") == memory.put("a", b"4")
    assert (tags(), memory.tags["a"]) == ([], "")


def test_a_tag_that_may_not_be_set_is_refused_at_once(s3: Bench, naps: list[float]) -> None:
    """It is refused like any missing right, as is a tag that a store does not support (501): nothing is written."""
    for status in (403, 501):
        s3.add(Match(operations={"PutObject"}), Refuse(status))
        with pytest.raises(StoreError) as refused:
            s3.store(naps=naps).create("a", b"1", tag="soal=finished")
        assert refused.value.denied
    assert naps == []
    assert s3.store().get("a") is None
