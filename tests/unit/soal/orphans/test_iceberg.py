"""`soal orphans` on an Iceberg table in a SQL catalog, on a test's S3."""

from __future__ import annotations

import gzip
import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

import soal.orphans.iceberg
from handler.json_document import schema_text
from safewriter.settle.recovery import Cause
from safewriter.tables.iceberg.table import name_of
from scripts.tables.iceberg import view
from soal.console.problem import Problem
from soal.orphans.iceberg import IcebergReport, ObjectFileIO, catalog_of
from soal.testing.s3 import EmbeddedS3
from tests.support.command_line import app
from tests.support.iceberg_files import writing_catalog
from tests.support.serving import serving
from tests.unit.safewriter.tables.iceberg.bench import Bench, contents

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

DAY_S = 86_400
HOSTILE = {"py-io-impl": "sys.exit", "s3.endpoint": "http://127.0.0.1:1", "token": "x"}
LOST = "s3://lake/w/db/t/data/lost.parquet"


class Left:
    """A table with the fence of a dead attempt, and the path of the file that this has left."""

    def __init__(self, s3: EmbeddedS3, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.s3 = s3
        self.catalog = {"type": "sql", "uri": f"sqlite:///{folder}/lite.db", "init_catalog_tables": "false"}
        own = {f"PYICEBERG_CATALOG__LITE__{name.upper()}": value for name, value in self.catalog.items()}
        for variable, value in {**s3.environment(), **own, "SOAL_HOME": str(folder)}.items():
            monkeypatch.setenv(variable, value)
        with monkeypatch.context() as patched:
            bench = Bench(folder, patched)
            self.fence = name_of(bench.claim().document.attempt)
            bench.settle(Cause.KILLED)
            bench.lake.put("w/db/t/data/lost.parquet", b"parquet")
            bench.lake.put("w/db/t2/data/of-another-table.parquet", b"parquet")
        for key, body in contents(bench.lake):
            s3.observer().put_object(Bucket="lake", Key=key, Body=body)

    def hostile(self) -> None:
        """Set table properties that override the catalog's in pyiceberg."""
        with writing_catalog("lite", self.catalog).load_table("db.t").transaction() as change:
            change.set_properties(HOSTILE)

    def soal(self, *arguments: str, table: str = "lite.db.t") -> Any:
        done = CliRunner().invoke(app, ["orphans", table, "--endpoint-url", self.s3.endpoint, *arguments])
        if isinstance(done.exception, Problem):
            raise done.exception
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout) if "--json" in arguments else done.stdout


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Left]:
    with EmbeddedS3(buckets=["lake"]) as s3:
        yield Left(s3, tmp_path, monkeypatch)


def test_the_published_schema_is_the_models() -> None:
    """If this fails: `python -m soal.orphans.iceberg > soal/orphans/iceberg.schema.json`."""
    published = Path(soal.orphans.iceberg.__file__).with_name("iceberg.schema.json")
    assert published.read_text(encoding="utf-8") == schema_text(IcebergReport)


def test_a_report_names_its_version_and_is_valid_under_its_schema(left: Left) -> None:
    """A report with an example of everything has its version and is valid."""
    left.s3.wire.clock_ahead_s = 200 * DAY_S
    found = left.soal("--older-than", "1d", "--json")
    assert found["schemaVersion"] == 1
    assert all(found[name] for name in ("orphans", "fences", "statements"))
    Draft202012Validator(json.loads(schema_text(IcebergReport))).validate(found)


def test_what_no_snapshot_names_and_what_fences_there_are_is_told(left: Left) -> None:
    """Orphans are reported with the statement that deletes them, unexpired fences without one; nothing changes."""
    keys = left.s3.keys("lake")
    left.s3.wire.clock_ahead_s = 2 * DAY_S
    found = left.soal("--older-than", "1d", "--json")
    assert [one["path"] for one in found["orphans"]] == [LOST]
    assert [one["name"] for one in found["fences"]] == [left.fence]
    assert found["retained"]["files"] == len(keys) - 2
    (statement,) = found["statements"]
    assert statement.startswith("CALL lite.system.remove_orphan_files(table => 'db.t', older_than => TIMESTAMP '")
    out = left.soal("--older-than", "1d")
    assert LOST in out.replace("\n", "")
    assert left.s3.keys("lake") == keys


@pytest.mark.parametrize(
    "file",
    [
        "metadata/00001-a.metadata.json",
        "metadata/v3.metadata.json.gz",
        "_delta_log/00000000000000000000.json",
        ".hoodie/hoodie.properties",
        "schema/schema-0",
    ],
)
def test_the_files_of_a_table_inside_are_no_orphans(left: Left, file: str) -> None:
    """Iceberg's procedure deletes all that this table does not name below its location, so there is no statement."""
    for key in (file, "data/rows.parquet"):
        left.s3.observer().put_object(Bucket="lake", Key=f"w/db/t/inner/{key}", Body=b"x")
    left.s3.wire.clock_ahead_s = 2 * DAY_S
    found = left.soal("--older-than", "1d", "--json")
    assert [one["path"] for one in found["orphans"]] == [LOST]
    assert found["otherTables"] == ["s3://lake/w/db/t/inner/"]
    assert found["statements"] == []
    assert "another table lies in s3://lake/w/db/t/inner/" in left.soal("--older-than", "1d").replace("\n", " ")


def shared(left: Left) -> list[str]:
    """Return what the survey says of a table in the same folder; it lists nothing and prints no statement."""
    left.s3.wire.clock_ahead_s = 2 * DAY_S
    found = left.soal("--older-than", "1d", "--json")
    assert (found["orphans"], found["statements"]) == ([], [])
    assert found["young"]["files"] == 0
    tables: list[str] = found["otherTables"]
    return tables


@pytest.mark.parametrize(
    "key",
    [
        "_delta_log/00000000000000000000.json",
        ".hoodie/hoodie.properties",
        "metadata/v1.metadata.json",
        "metadata/v3.metadata.json.gz",
        "elsewhere/1.gz.metadata.json",
    ],
)
def test_a_table_in_the_same_folder_keeps_its_files(left: Left, key: str) -> None:
    """Metadata of another format, or some that nobody can read: nothing tells whose the files are."""
    for name in (key, "part-0.parquet"):
        left.s3.observer().put_object(Bucket="lake", Key=f"w/db/t/{name}", Body=b"x")
    assert shared(left) == ["s3://lake/w/db/t/"]
    out = left.soal("--older-than", "1d").replace("\n", " ")
    assert "another table lies in s3://lake/w/db/t/: do not call remove_orphan_files" in out


@pytest.mark.parametrize("is_gzip", [False, True])
def test_an_iceberg_table_with_the_same_location_keeps_its_files(left: Left, *, is_gzip: bool) -> None:
    """Its metadata has another id; this table's own older metadata, which it does not name any more, has the same."""
    s3 = left.s3.observer()
    own = [key for key in left.s3.keys("lake") if key.startswith("w/db/t/") and key.endswith(".metadata.json")]
    body = s3.get_object(Bucket="lake", Key=own[0])["Body"].read()
    pack = gzip.compress if is_gzip else bytes
    s3.put_object(Bucket="lake", Key="w/db/t/metadata/0-older.metadata.json", Body=pack(body))
    left.s3.wire.clock_ahead_s = 2 * DAY_S
    assert LOST in [one["path"] for one in left.soal("--older-than", "1d", "--json")["orphans"]]
    left.s3.wire.clock_ahead_s = 0
    other = json.dumps({**json.loads(body), "table-uuid": "00000000-0000-4000-8000-000000000000"}).encode()
    s3.put_object(Bucket="lake", Key="w/db/t/metadata/0-other.metadata.json", Body=pack(other))
    assert shared(left) == ["s3://lake/w/db/t/"]


def test_what_is_young_is_not_told(left: Left) -> None:
    """Young files are not reported, since an open block has such files; there is no statement."""
    found = left.soal("--json")
    assert (found["orphans"], found["young"]["files"], found["statements"]) == ([], 1, [])


def test_a_fence_that_has_expired_is_a_tag_to_drop(left: Left) -> None:
    """An expired fence is dropped by its own statement: `expire_snapshots` would also expire the table's snapshots."""
    left.s3.wire.clock_ahead_s = 200 * DAY_S
    found = left.soal("--older-than", "1d", "--json")
    assert found["statements"][1:] == [
        f"ALTER TABLE `lite`.`db`.`t` DROP TAG `{one['name']}`" for one in found["fences"]
    ]
    assert len(found["fences"]) == 1


def test_a_table_s_properties_call_no_python_and_choose_no_server(left: Left) -> None:
    """A table's properties are ignored: pyiceberg would pass the operator's credentials to any class that they name."""
    left.hostile()
    assert left.soal("--json")["young"]["files"] == 1
    assert view(left.s3.observer(), left.catalog, "lite.db.t").version == 1


def test_neither_do_those_that_a_server_tells(left: Left) -> None:
    """Properties of a table or catalog from a REST server are ignored, too."""
    left.hostile()
    keys = [key for key in left.s3.keys("lake") if key.endswith(".metadata.json")]
    documents = [json.loads(left.s3.observer().get_object(Bucket="lake", Key=key)["Body"].read()) for key in keys]
    (metadata,) = (one for one in documents if "py-io-impl" in one["properties"])
    answer = {"metadata-location": f"s3://lake/{keys[0]}", "metadata": metadata, "config": HOSTILE}

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_config = self.path.startswith("/v1/config")
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"defaults": HOSTILE, "overrides": HOSTILE} if is_config else answer).encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with serving(Server) as endpoint:
        catalog = catalog_of("rest", {"type": "rest", "uri": endpoint})
        assert isinstance(catalog.load_table("db.t").io, ObjectFileIO)


@pytest.mark.parametrize(
    ("table", "more", "problem"),
    [
        ("lite.db.t", ("--delete",), "deletes nothing of an Iceberg table"),
        ("lite.db.other", (), "does not exist"),
        ("other.db.t", (), "cannot be read"),
        ("t", (), "no full name"),
    ],
)
def test_what_cannot_be_done_is_told(left: Left, table: str, more: tuple[str, ...], problem: str) -> None:
    """A wrong name, an unknown catalog, or --delete is a problem with its reason."""
    with pytest.raises(Problem, match=problem):
        left.soal(*more, table=table)
