from __future__ import annotations

from typing import Any

import pytest

from safewriter.objects import Location
from safewriter.objects.s3 import open_store, s3_client, table_store

# How it behaves against a server stands in tests/contract/test_object_store.py.


def config_of() -> Any:
    return s3_client().meta.config


def test_a_client_gives_up_in_bounded_time_and_does_not_retry_by_itself() -> None:
    """A conditional write that was retried below us would look like a lost race."""
    config = config_of()

    assert (config.connect_timeout, config.read_timeout) == (2.0, 5.0)
    assert config.retries["total_max_attempts"] == 1


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
def test_a_custom_endpoint_has_its_buckets_in_the_path(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A server on this machine has no names of buckets in its DNS."""
    monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert config_of().s3 == {"addressing_style": "path"}


def test_amazon_is_called_by_the_buckets_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an endpoint of one's own nothing is changed."""
    monkeypatch.delenv("AWS_ENDPOINT_URL")

    assert not config_of().s3


def test_one_process_has_one_client_for_one_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm process does not build a client for each block, and notices new credentials."""
    first, second = open_store(Location("one")), open_store(Location("two", "prefix"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
    third = open_store(Location("one"))

    assert first._client is second._client
    assert third._client is not first._client


@pytest.mark.parametrize(
    ("prefix", "uri"),
    [("", "s3://lake/x"), ("a/b", "s3://lake/a/b/x"), ("a/b/", "s3://lake/a/b/x"), ("/", "s3://lake/x")],
)
def test_keys_are_relative_to_the_prefix(prefix: str, uri: str) -> None:
    """One slash between prefix and key, none before a key without one."""
    assert open_store(Location("lake", prefix)).uri("x") == uri


def test_a_table_is_opened_by_its_uri() -> None:
    """The store of a table is rooted at the table."""
    assert table_store("s3://lake/a/b").uri("_delta_log/") == "s3://lake/a/b/_delta_log/"
