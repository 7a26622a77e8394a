"""A settler reaches the catalogs of its own configuration, and no address that a document names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from safewriter.deadline import epoch_ms
from safewriter.errors import UnsupportedError
from safewriter.record.checkpoints import Checkpoints
from safewriter.settle.one_write import Action, settle_one
from safewriter.settle.recovery import Cause, Recovery
from safewriter.tables.iceberg.catalogs import configured
from tests.support.listener import Listener
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.record.samples import attempt, document

if TYPE_CHECKING:
    from pathlib import Path

REST = {"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog", "spark.sql.catalog.lake.type": "rest"}
OWN = {**REST, "spark.sql.catalog.lake.uri": "https://own"}


def test_the_settler_s_variables_name_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    """The document's address does not count beside them."""
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", "https://own")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__CREDENTIAL", "id:s3cr3t")
    found = configured("lake", {}, {"type": "rest", "uri": "https://evil", "oauth2-server-uri": "https://evil"})
    assert found == {"type": "rest", "uri": "https://own", "credential": "id:s3cr3t"}


def test_a_database_in_the_variables_is_found_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a catalog whose name has an underscore, for which pyiceberg reads a hyphen."""
    monkeypatch.setenv("PYICEBERG_CATALOG__MY_LAKE__URI", "postgresql+psycopg2://db/lake")
    assert configured("my_lake", {}, {})["type"] == "sql"


def test_damaged_settings_keep_no_settler_from_a_catalog_that_its_variables_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without such variables it says so, and asks nobody."""
    monkeypatch.setenv("SOAL_CONF", "{")
    with pytest.raises(UnsupportedError, match="SOAL_CONF is no JSON object"):
        configured("lake", {}, {})
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", "https://own")
    assert configured("lake", {}, {}) == {"type": "rest", "uri": "https://own"}


@pytest.mark.parametrize("by", ["variable", "argument"])
def test_spark_s_settings_name_the_catalog(monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    """The function's own, or those of the run; the variables of pyiceberg add a login or another address."""
    if by == "variable":
        monkeypatch.setenv("SOAL_CONF", json.dumps(OWN))
    settings = OWN if by == "argument" else {}
    assert configured("lake", settings, {"uri": "https://evil"}) == {"type": "rest", "uri": "https://own"}
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TOKEN", "s3cr3t")
    assert configured("lake", settings, {}) == {"type": "rest", "uri": "https://own", "token": "s3cr3t"}


def test_a_document_tells_which_catalog_of_glue_it_is() -> None:
    """AWS has all of its addresses; an endpoint, or a region that is none, does not count."""
    known = {"type": "glue", "glue.id": "123456789012", "client.region": "eu-west-3"}
    assert configured("lake", {}, {**known, "glue.endpoint": "https://evil", "warehouse": "s3://x"}) == known
    there = {**known, "client.region": "evil.example/#"}
    assert configured("lake", {}, there) == {"type": "glue", "glue.id": "123456789012"}


@pytest.mark.parametrize(
    "told",
    [
        {"type": "rest", "uri": "https://evil"},
        {"type": "jdbc", "uri": "jdbc:postgresql://evil/x", "jdbc.user": "u"},
        {"type": "jdbc", "uri": "jdbc:sqlite:/tmp/x.db"},
        {"type": "glue-like"},
        {},
    ],
)
@pytest.mark.parametrize("credential", ["", "id:s3cr3t"])
def test_a_catalog_that_only_a_document_names_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, str], credential: str
) -> None:
    """A login alone names no catalog; the error says what to set."""
    if credential:
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__CREDENTIAL", credential)
    with pytest.raises(UnsupportedError, match=r"'lake'.*SOAL_CONF, or PYICEBERG_CATALOG__LAKE__URI"):
        configured("lake", {}, told)


@pytest.mark.parametrize("told", [{"type": "rest"}, {"type": "rest", "oauth2-server-uri": "there"}])
def test_a_hostile_document_gets_no_request(monkeypatch: pytest.MonkeyPatch, told: dict[str, str]) -> None:
    """Neither the settler's login, which belongs to its own catalog, nor any request leaves for the document's address:
    the write stays open, and the reason names the configuration.
    """
    bucket, listener = MemoryObjectStore(), Listener()
    catalog = {**told, "uri": listener.url, **({"oauth2-server-uri": listener.url} if len(told) > 1 else {})}
    hostile = document(table="lake.db.t", format="iceberg", attempts=(attempt(table_id="u", catalog=catalog),))
    bucket.put(f"checkpoints/{hostile.write_key}.json", hostile.to_bytes())
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__CREDENTIAL", "id:s3cr3t")
    checkpoints = Checkpoints(bucket)
    recovery = Recovery(checkpoints, lambda _: MemoryObjectStore(), clock=epoch_ms)
    found = settle_one(checkpoints, recovery, hostile.write_key, Cause.SWEEPER, epoch_ms)
    listener.close()
    assert found.action is Action.FAILED
    assert "PYICEBERG_CATALOG__LAKE__URI" in str(found.problem)
    assert listener.heard == b""


@pytest.mark.parametrize("place", ["PYICEBERG_HOME", "HOME", "."])
def test_pyiceberg_s_own_file_names_the_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Wherever pyiceberg looks for it, also if no variable is set."""
    monkeypatch.setenv("HOME", str(tmp_path / "no home"))
    monkeypatch.chdir(tmp_path if place == "." else "/")
    if place != ".":
        monkeypatch.setenv(place, str(tmp_path))
    (tmp_path / ".pyiceberg.yaml").write_text("catalog:\n  lake:\n    uri: https://here\n", encoding="utf-8")
    assert configured("lake", {}, {}) == {"uri": "https://here", "type": "rest"}


def test_a_database_is_reached_without_pyiceberg(tmp_path: Path) -> None:
    """A settler in a new process would spend most of its time on that import."""
    conf = {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "jdbc",
        "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{tmp_path}/lake.db",
    }
    program = """
import sys
from safewriter.objects.store import StoreError
from safewriter.tables.iceberg.catalogs import configured, open_pointer
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.iceberg.table import IcebergTable
name = TableName.parse("lake.db.t")
pointer = open_pointer(name, configured("lake", {}, {}), None)
try:
    IcebergTable(name, pointer, int, lambda: True, None).trace("sw-1", 0)
except StoreError as error:
    print("no such table" in str(error), "sqlalchemy" in sys.modules, "pyiceberg" in sys.modules)
"""
    environment = {"SOAL_CONF": json.dumps(conf), "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    line = [sys.executable, "-P", "-c", program]
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["True", "True", "False"]
