"""`soal local run` uploads a script with the files of its arguments, and finds what the run has written."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog

from safewriter.objects import Location
from scripts.local.own_script import commits, own_script, written
from soal.console.problem import Problem
from soal.local.names import BUCKETS
from soal.target import local_target
from soal.testing.s3 import EmbeddedS3
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client

    from soal.target import Target

pytestmark = pytest.mark.slow


@pytest.fixture
def target() -> Iterator[Target]:
    with EmbeddedS3(buckets=BUCKETS) as s3:
        yield local_target(s3.endpoint)


@pytest.fixture
def client(target: Target) -> S3Client:
    return target.client()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "job.py").write_text("print()", encoding="utf-8")
    (tmp_path / "rows.csv").write_text("a\n1\n", encoding="utf-8")
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_script_and_the_files_of_its_arguments_are_uploaded(client: S3Client, folder: Path) -> None:
    """An argument that names a file, alone or behind an option's equals sign, becomes its s3a:// path; others stay."""
    rest = ["--table", "s3a://soal-lake/t", "--n=1", "data", "", "a=rows.csv", "x" * 300]
    event = own_script(folder / "job.py", ["rows.csv", "--more=rows.csv", *rest]).uploaded(client)
    assert event == {
        "entryPoint": "s3://soal-scripts/job.py",
        "entryPointArguments": ["s3a://soal-data/rows.csv", "--more=s3a://soal-data/rows.csv", *rest],
    }
    assert client.get_object(Bucket="soal-scripts", Key="job.py")["Body"].read() == b"print()"
    assert client.get_object(Bucket="soal-data", Key="rows.csv")["Body"].read() == b"a\n1\n"


@pytest.mark.parametrize(("name", "said"), [("none.py", "no such file"), ("rows.csv", "not a Python script")])
def test_what_is_no_script_is_a_usage_error(folder: Path, name: str, said: str) -> None:
    """The problem names the file and the form of the command, before anything starts."""
    with pytest.raises(Problem, match=f"{name}: .*{said}") as caught:
        own_script(folder / name, ["rows.csv"])
    assert "soal local run" in caught.value.todo


def test_two_files_of_one_name_are_refused(folder: Path) -> None:
    """One would replace the other in the bucket."""
    (folder / "data" / "rows.csv").write_text("b\n", encoding="utf-8")
    with pytest.raises(Problem, match=r"two files are called rows\.csv"):
        own_script(folder / "job.py", ["rows.csv", "data/rows.csv"])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("row.csv", r"row\.csv is no file here \(there is rows\.csv\)"),
        ("--source=in/Orders.CSV", r"in/Orders\.CSV is no file here: .*correct its name"),
        ("data", "data is a folder here, and only files are uploaded"),
    ],
)
def test_an_argument_that_looks_like_data_of_this_machine_is_doubted(argument: str, said: str) -> None:
    """The script gets it as it is: it may be the name of an output."""
    own = own_script(Path("job.py"), [argument])
    (doubt,) = own.doubts
    assert re.match(said, doubt)
    assert own.arguments == (argument,)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "argument", ["rows.csv", "s3a://soal-data/row.csv", "local.db.t", "2026-11-27", "1.5", "", "--x"]
)
def test_any_other_argument_is_not_doubted(argument: str) -> None:
    """Files that are there, S3's paths, names of tables, dates and numbers are what they look like."""
    assert own_script(Path("job.py"), [argument]).doubts == ()


def test_what_a_run_has_written_is_each_table_once_with_its_newest_version(client: S3Client, target: Target) -> None:
    """Commits before the run, and objects that end no write, do not count."""

    def put(*keys: str) -> None:
        for key in keys:
            client.put_object(Bucket="soal-lake", Key=key, Body=b"")

    put(f"old/_delta_log/{0:020}.json", "ice/metadata/00000-a.metadata.json")
    before = commits(client)
    put(f"a/b/_delta_log/{0:020}.json", f"a/b/_delta_log/{1:020}.json", "a/b/part.parquet")
    put("ice/metadata/00001-b.metadata.json", "ice/metadata/snap-1.avro", "out/_SUCCESS", "half/part.csv")
    found = written(commits(client) - before, target)
    assert [(one.location, one.kind) for one in found] == [
        ("s3a://soal-lake/a/b", "Delta"),
        ("s3a://soal-lake/ice", "Iceberg"),
        ("s3a://soal-lake/out", "files"),
    ]
    assert "ice/metadata/00001-b.metadata.json" in str(found[1].read)
    assert found[2].read is None


def test_the_command_that_reads_a_table_runs_nothing_that_its_location_says(client: S3Client, target: Target) -> None:
    """A location may hold what somebody has put into a column; in a shell the command is one Python literal."""
    hostile = "x\" + str(open(`touch pwned`)) + '$(touch pwned)"
    client.put_object(Bucket="soal-lake", Key=f"{hostile}/_delta_log/{0:020}.json", Body=b"")
    (found,) = written(commits(client), target)
    program, option, code = shlex.split(str(found.read))
    assert (program, option) == (sys.executable, "-c")
    literals = {node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)}
    assert f"s3://soal-lake/{hostile}" in literals
    assert not any(isinstance(node, ast.BinOp) for node in ast.walk(ast.parse(code)))


def test_the_command_that_reads_an_iceberg_table_lets_it_name_no_class_and_no_server(
    client: S3Client, target: Target
) -> None:
    """The table's properties may be those of a table that the script has copied."""
    aws = target.aws
    options = {"s3.endpoint": aws["AWS_ENDPOINT_URL_S3"], "s3.region": aws["AWS_REGION"]}
    login = {"s3.access-key-id": aws["AWS_ACCESS_KEY_ID"], "s3.secret-access-key": aws["AWS_SECRET_ACCESS_KEY"]}
    catalog = InMemoryCatalog("lake", warehouse="s3://soal-lake/ice", **options, **login)
    catalog.create_namespace("db")
    rows = pa.table({"price": [4711]})
    table = catalog.create_table("db.t", rows.schema)
    table.append(rows)
    place = Location.parse(table.metadata_location)
    metadata = json.load(client.get_object(Bucket=place.bucket, Key=place.key)["Body"])
    metadata["properties"] |= {"py-io-impl": "no.such.Class", "s3.endpoint": "http://127.0.0.1:9"}
    client.put_object(Bucket=place.bucket, Key=place.key, Body=json.dumps(metadata).encode())

    (found,) = written(commits(client), target)
    told = subprocess.run(shlex.split(str(found.read)), capture_output=True, text=True, timeout=BUSY_S, check=True)
    assert "4711" in told.stdout
