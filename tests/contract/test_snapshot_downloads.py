"""Downloads of shards, on a server and in memory."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING

import pytest
from botocore.response import StreamingBody

from safewriter.objects.store import StoreError
from soal.testing.s3 import Refuse
from tests.contract.bench import GET
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from safewriter.objects.s3 import S3ObjectStore
    from safewriter.objects.store import ObjectStore
    from tests.contract.bench import Bench

MIB = 1 << 20


@pytest.fixture(params=["memory", "prefix"])
def streaming(request: pytest.FixtureRequest, remote: S3ObjectStore) -> ObjectStore:
    return MemoryObjectStore() if request.param == "memory" else remote


def test_an_object_comes_in_blocks(streaming: ObjectStore) -> None:
    """The blocks hold the whole object in order, none larger than a MiB; an empty object works, too."""
    body = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(3 * MIB // 32 + 7))
    streaming.put("a/shard.db", body)
    blocks = streaming.stream("a/shard.db")
    assert blocks is not None
    found = list(blocks)
    assert b"".join(found) == body
    assert len(found) > 3
    assert max(map(len, found)) <= MIB
    streaming.put("empty", b"")
    assert b"".join(streaming.stream("empty") or [b"none"]) == b""


def test_no_object_is_no_error(streaming: ObjectStore) -> None:
    """None means that the object is missing."""
    assert streaming.stream("none") is None


def test_a_server_that_does_not_answer_is_asked_again(remote: S3ObjectStore, s3: Bench, naps: list[float]) -> None:
    """As for any other read, with the same number of attempts."""
    remote.put("a", b"x")
    s3.add(GET, Refuse(503))
    assert b"".join(remote.stream("a") or ()) == b"x"
    s3.add(GET, Refuse(503), times=None)
    with pytest.raises(StoreError, match="GET s3://"):
        remote.stream("a")
    assert len(naps) == 3


def test_a_body_that_ends_early_is_told(remote: S3ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not taken for the end of the object."""
    half = StreamingBody(io.BytesIO(b"x" * 10), 20)
    monkeypatch.setattr(remote._client, "get_object", lambda **_: {"Body": half})
    with pytest.raises(StoreError, match="GET s3://"):
        list(remote.stream("a") or ())
