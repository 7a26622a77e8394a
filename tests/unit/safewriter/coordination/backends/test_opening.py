"""A URI or the environment chooses the lock service: S3, DynamoDB or memory; a server not Amazon's is probed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from safewriter.coordination.backends.memory import by_name
from safewriter.coordination.backends.opening import open_backend
from safewriter.coordination.backends.s3 import S3Backend
from safewriter.coordination.record import Record
from safewriter.errors import SettingError
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from safewriter.objects import Location


class Elsewhere(MemoryObjectStore):
    """A bucket on a server that is not Amazon's."""

    endpoint = "http://elsewhere"


@pytest.fixture(autouse=True)
def stores(monkeypatch: pytest.MonkeyPatch) -> list[MemoryObjectStore]:
    """The stores that were opened."""
    opened: list[MemoryObjectStore] = []

    def open_store(location: Location) -> MemoryObjectStore:
        opened.append(Elsewhere(bucket=f"{location.bucket}/{location.key}".strip("/")))
        return opened[-1]

    monkeypatch.setattr("safewriter.objects.s3.open_store", open_store)
    monkeypatch.delenv("SW_LOCKS", raising=False)
    monkeypatch.delenv("SW_CHECKPOINT_BUCKET", raising=False)
    return opened


def test_a_service_is_named_by_its_uri(stores: list[MemoryObjectStore]) -> None:
    """The URI names a bucket, a prefix of one, or this process's memory."""
    assert open_backend("memory://here") is by_name("here")
    found = open_backend("s3://bucket/prefix")
    assert isinstance(found, S3Backend)
    assert found.server == "http://elsewhere"
    found.write(Record("lock"), None)
    assert stores[0].uri("") == "s3://bucket/prefix/"


def test_without_one_the_locks_lie_where_the_environment_says(
    stores: list[MemoryObjectStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`SW_LOCKS` names the service, else it is the checkpoint bucket."""
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", "checkpoints")
    assert isinstance(open_backend(""), S3Backend)
    assert stores[0].uri("") == "s3://checkpoints/"
    monkeypatch.setenv("SW_LOCKS", "memory://there")
    assert open_backend("") is by_name("there")


def test_without_any_the_missing_setting_is_named() -> None:
    """The error names the checkpoint bucket's setting."""
    with pytest.raises(SettingError, match="SW_CHECKPOINT_BUCKET"):
        open_backend("")


@pytest.mark.parametrize("uri", ["bucket", "s3://", "memory://", "redis://here", "://x"])
def test_any_other_text_is_refused_by_the_key(uri: str) -> None:
    """The error lists the services."""
    with pytest.raises(SettingError, match=r"job\.coordinator\.backend: .* is none of s3://"):
        open_backend(uri)


def test_a_bucket_that_cannot_be_one_is_refused_by_the_key() -> None:
    """The error says what is wrong with the bucket's name."""
    with pytest.raises(SettingError, match=r"job\.coordinator\.backend: .* has no valid bucket name"):
        open_backend("s3://No/prefix")


def test_a_table_of_another_server_is_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's own endpoint decides."""
    client = SimpleNamespace(meta=SimpleNamespace(endpoint_url="http://elsewhere"))
    monkeypatch.setattr("safewriter.coordination.backends.dynamodb.dynamodb_client", lambda: client)
    assert open_backend("dynamodb://locks").server == "http://elsewhere"
