"""Which log stores a session may have for the schemes of S3."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from safewriter.errors import UnguardedSessionError
from safewriter.tables.delta.session import LOG_STORE
from tests.unit.safewriter.tables.delta.driverless import session


def check_log_stores(table: str, kept: dict[str, str], files: dict[str, str]) -> str:
    """Look at the settings of a session and at the file systems that its Hadoop knows."""
    one = session()
    one.table = table
    context = SimpleNamespace(
        conf=lambda: SimpleNamespace(get=kept.get), hadoopConfiguration=lambda: SimpleNamespace(get=files.get)
    )
    one.jspark = SimpleNamespace(sparkContext=lambda: context)
    return one._check_log_stores()


S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


@pytest.mark.parametrize("table", ["s3", "s3a", "s3n"])
@pytest.mark.parametrize("unguarded", ["s3", "s3a", "s3n"])
def test_each_scheme_that_spark_has_a_file_system_for_is_guarded(table: str, unguarded: str) -> None:
    """A catalog may know the table by another scheme than the one that the block was given."""
    kept = {f"spark.delta.logStore.{scheme}.impl": LOG_STORE for scheme in ("s3", "s3a", "s3n") if scheme != unguarded}
    files = {f"fs.{scheme}.impl": S3A for scheme in ("s3", "s3a", "s3n")}
    with pytest.raises(UnguardedSessionError, match=rf"spark\.delta\.logStore\.{unguarded}\.impl is not set"):
        check_log_stores(f"{table}://lake/t", kept, files)


@pytest.mark.parametrize("key", ["spark.delta.logStore.s3a.impl", "delta.logStore.s3a.impl"])
@pytest.mark.parametrize("general", [None, LOG_STORE])
def test_a_session_is_guarded_by_either_name_of_delta_s_setting(key: str, general: str | None) -> None:
    """Beside the general setting, too, as long as it names no other log store."""
    kept = {key: LOG_STORE, **({} if general is None else {"spark.delta.logStore.class": general})}
    assert check_log_stores("s3a://lake/t", kept, {"fs.s3a.impl": S3A}) == "spark.delta.logStore.s3a.impl"


def test_a_general_log_store_of_another_kind_is_refused() -> None:
    """Delta takes it before those of the schemes."""
    kept = {"spark.delta.logStore.s3a.impl": LOG_STORE, "spark.delta.logStore.class": "their.LogStore"}
    with pytest.raises(UnguardedSessionError, match=r"spark\.delta\.logStore\.class is their\.LogStore"):
        check_log_stores("s3a://lake/t", kept, {})
