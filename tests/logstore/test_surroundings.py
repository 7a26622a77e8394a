"""The log stores that a session may have for S3's schemes, and its S3 endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.logstore.jvm import LogStore

OURS = "io.soal.logstore.ConditionalS3LogStore"
S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def look(store: LogStore, table: str, conf: dict[str, str], files: dict[str, str]) -> Any:
    return store.ask("surroundings", path=table, conf=conf, files=files)


@pytest.mark.parametrize("table", ["s3", "s3a", "s3n"])
@pytest.mark.parametrize("unguarded", ["s3", "s3a", "s3n"])
def test_each_scheme_that_spark_has_a_file_system_for_is_guarded(
    logstore: LogStore, table: str, unguarded: str
) -> None:
    """A catalog may use another scheme for the table than the block does."""
    conf = {f"spark.delta.logStore.{scheme}.impl": OURS for scheme in ("s3", "s3a", "s3n") if scheme != unguarded}
    files = {f"fs.{scheme}.impl": S3A for scheme in ("s3", "s3a", "s3n")}
    found = look(logstore, f"{table}://lake/t", conf, files)
    assert (found["key"], found["found"]) == (f"spark.delta.logStore.{unguarded}.impl", "")


@pytest.mark.parametrize("key", ["spark.delta.logStore.s3a.impl", "delta.logStore.s3a.impl"])
@pytest.mark.parametrize("general", [None, OURS])
def test_a_session_is_guarded_by_either_name_of_delta_s_setting(
    logstore: LogStore, key: str, general: str | None
) -> None:
    """Also with the general setting, unless that names another log store."""
    conf = {key: OURS, **({} if general is None else {"spark.delta.logStore.class": general})}
    assert "key" not in look(logstore, "s3a://lake/t", conf, {"fs.s3a.impl": S3A})


def test_a_general_log_store_of_another_kind_is_named(logstore: LogStore) -> None:
    """It takes precedence over the schemes' settings in Delta."""
    conf = {"spark.delta.logStore.s3a.impl": OURS, "spark.delta.logStore.class": "their.LogStore"}
    found = look(logstore, "s3a://lake/t", conf, {})
    assert (found["key"], found["found"]) == ("spark.delta.logStore.class", "their.LogStore")


@pytest.mark.parametrize(
    ("files", "endpoint"),
    [
        ({}, ""),
        ({"fs.s3a.endpoint": "http://all"}, "http://all"),
        ({"fs.s3a.endpoint": "http://all", "fs.s3a.bucket.lake.endpoint": "http://one"}, "http://one"),
        ({"fs.s3a.endpoint": "http://all", "fs.s3a.bucket.other.endpoint": "http://one"}, "http://all"),
    ],
)
def test_the_address_is_that_of_the_table_s_bucket(logstore: LogStore, files: dict[str, str], endpoint: str) -> None:
    """A bucket may have an endpoint of its own."""
    assert look(logstore, "s3a://lake/t", {"spark.delta.logStore.s3a.impl": OURS}, files)["endpoint"] == endpoint
