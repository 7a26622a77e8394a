"""A stock Spark has the jars of Delta, Iceberg and S3A, and nothing of SoAL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.provision.jars import OWN_JARS
from tests.support import spark_session

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_stock_spark_is_given_no_jar_of_ours_or_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stock class path has none of our jars, which change Hadoop, and no second version of PySpark's jars."""
    for name in ("hadoop-aws-3.4.2.jar", "delta-spark.jar", "netty-common-4.2.20.Final.jar", *OWN_JARS):
        (tmp_path / name).touch()
    monkeypatch.setattr(spark_session, "JARS", tmp_path)
    assert spark_session.stock_class_path() == f"{tmp_path}/delta-spark.jar:{tmp_path}/hadoop-aws-3.4.2.jar"
