"""The settings of a test's session name jars, or the packages from which Spark fetches them."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from safewriter.errors import UsageError
from soal.testing import session
from soal.testing.session import session_settings


def test_without_jars_spark_fetches_the_versions_of_the_python_packages() -> None:
    """Delta's for this Spark, and hadoop-aws of the Hadoop in it."""
    delta, hadoop = session_settings("http://127.0.0.1:1")["spark.jars.packages"].split(",")
    assert delta == f"io.delta:delta-spark_4.1_2.13:{version('delta-spark')}"
    assert hadoop.startswith("org.apache.hadoop:hadoop-aws:3.")


def test_named_jars_are_taken_with_safewriter_s() -> None:
    """Nothing is fetched then."""
    settings = session_settings("http://127.0.0.1:1", [Path("/jars/delta.jar")])
    assert "spark.jars.packages" not in settings
    assert settings["spark.jars"].startswith("/jars/delta.jar,/")
    assert settings["spark.jars"].endswith("soal-logstore.jar")


def test_a_small_table_is_read_in_few_tasks_as_in_the_function() -> None:
    """Delta's default is 50 for each version that it reads, most of the time of a test; a job's output has no bars."""
    settings = session_settings("http://127.0.0.1:1", [Path("/jars/delta.jar")])
    lines = (Path(__file__).parents[4] / "image/spark/spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    function = dict(line.split(maxsplit=1) for line in lines if line.startswith("spark."))
    for key in ("spark.databricks.delta.snapshotPartitions", "spark.ui.showConsoleProgress"):
        assert settings[key] == function[key]


def test_a_place_without_delta_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither jars nor the package tell of a version."""

    def missing(name: str) -> str:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(session, "version", missing)
    with pytest.raises(UsageError, match="pip install delta-spark"):
        session_settings("http://127.0.0.1:1")
