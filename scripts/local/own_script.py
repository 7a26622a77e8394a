"""A script and files of this machine in the local S3, and the tables that a run has changed there: `soal local run`."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from soal.console.problem import Problem
from soal.local.names import CHECKPOINTS, DATA, SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mypy_boto3_s3 import S3Client

    from soal.target import Target

_COMMIT: Final = re.compile(r"(.+)/(?:(_delta_log)/\d{20}\.json|(metadata)/[^/]+\.metadata\.json|_SUCCESS)")
"""The object with which a write to Delta, to Iceberg, or of Spark's other files ends."""

_SUFFIXES: Final = frozenset(
    {".avro", ".bz2", ".csv", ".gz", ".json", ".jsonl", ".ndjson", ".orc", ".parquet", ".tsv", ".txt", ".xml", ".yaml"}
    | {".yml", ".zip", ".zst"}
)
"""Of files with data or settings."""

Commits = frozenset[tuple[str, str, str]]
"""Bucket, key and time of each commit."""


@dataclass(frozen=True, slots=True)
class Written:
    """A table or a folder of files that a run has changed. `read` is the command that prints it, if there is one."""

    location: str
    kind: str
    read: str | None


@dataclass(frozen=True, slots=True)
class OwnScript:
    """A script, the files that its arguments name, by their names in the bucket, and the arguments that it gets."""

    script: Path
    files: Mapping[str, Path]
    arguments: tuple[str, ...]
    doubts: tuple[str, ...]
    """A sentence for each argument that looks like data on this machine, and is no file here."""

    def uploaded(self, client: S3Client) -> dict[str, Any]:
        """Upload the script and the files; return the event of the job."""
        client.upload_file(str(self.script), SCRIPTS, self.script.name)
        for name, path in self.files.items():
            client.upload_file(str(path), DATA, name)
        return {"entryPoint": f"s3://{SCRIPTS}/{self.script.name}", "entryPointArguments": list(self.arguments)}


def own_script(script: Path, arguments: Sequence[str]) -> OwnScript:
    """Return a script with its arguments, of which each `FILE` or `--name=FILE` that is a file of this machine becomes
    the s3a:// path to which the file will be uploaded; all others stay. Raises `Problem` for what is no script, and for
    two files of one name.
    """
    if script.suffix != ".py" or not script.is_file():
        raise Problem(
            f"{script}: {'not a Python script' if script.is_file() else 'there is no such file'}",
            todo="name a script: soal local run [options] my_job.py [its arguments]",
        )
    files: dict[str, Path] = {}
    passed: list[str] = []
    doubts: list[str] = []
    for argument in arguments:
        option, equals, value = argument.partition("=") if argument.startswith("-") else ("", "", argument)
        path = Path(value).absolute()
        if os.path.isfile(path):  # noqa: PTH113 - pathlib's raises for a word longer than a name may be
            if files.setdefault(path.name, path) != path:
                raise Problem(f"two files are called {path.name}: {files[path.name]}, {path}", todo="rename one")
            passed.append(f"{option}{equals}s3a://{DATA}/{path.name}")
        else:
            passed.append(argument)
            doubts.extend(_doubt(value, path))
    return OwnScript(script, files, tuple(passed), tuple(doubts))


def _doubt(value: str, path: Path) -> Iterator[str]:
    """Yield a sentence if an argument was probably meant as data on this machine. It may also be the name of an output,
    or any word: only the script knows.
    """
    if not value or "://" in value:
        return
    if os.path.isdir(path):  # noqa: PTH112 - as above
        yield f"{value} is a folder here, and only files are uploaded: the script gets this word as it is"
    elif path.suffix.lower() in _SUFFIXES:
        names: list[str] = []
        with suppress(OSError):
            names = os.listdir(path.parent)  # noqa: PTH208 - only names are compared
        near = "".join(f" (there is {name})" for name in get_close_matches(path.name, names, n=1))
        yield (
            f"{value} is no file here{near}: the script gets this word as it is. If it shall be a file of this machine,"
            " correct its name"
        )


def commits(client: S3Client) -> Commits:
    """Return the commits in all buckets of tables and files."""
    buckets = {row["Name"] for row in client.list_buckets()["Buckets"]} - {SCRIPTS, CHECKPOINTS}
    return frozenset(
        (bucket, row["Key"], row["LastModified"].isoformat())
        for bucket in buckets
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        for row in page.get("Contents", ())
        if _COMMIT.fullmatch(row["Key"])
    )


def written(new: Commits, target: Target) -> tuple[Written, ...]:
    """Return what the `new` commits have changed, each table once."""
    found = {}
    for bucket, key, _ in sorted(new):  # the last metadata of a table comes last
        match = _COMMIT.fullmatch(key)
        if match is not None:
            location = f"{bucket}/{match[1]}"
            if match[2]:
                found[location] = Written(f"s3a://{location}", "Delta", _delta(f"s3://{location}", target.aws))
            elif match[3]:
                found[location] = Written(f"s3a://{location}", "Iceberg", _iceberg(f"s3://{bucket}/{key}", target.aws))
            else:
                found[location] = Written(f"s3a://{location}", "files", None)
    return tuple(found.values())


def _delta(uri: str, aws: Mapping[str, str]) -> str:
    from scripts.tables.delta import options  # imports deltalake

    # DataFusion reads it. `DeltaTable.to_pandas` leaves threads that wait for Python: one process in 20 aborts at exit.
    table = f"table = DeltaTable({json.dumps(uri)}, storage_options={json.dumps(options(aws))});"
    rows = 'rows = QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all();'
    return _command(
        f"import pyarrow; from deltalake import DeltaTable, QueryBuilder; {table} {rows}"
        " print(pyarrow.table(rows).to_pandas())"
    )


def _iceberg(metadata: str, aws: Mapping[str, str]) -> str:
    """Return the command that reads a table. `StaticTable` would let the table's own properties name any Python class
    (`py-io-impl`) and server.
    """
    options = {
        "s3.endpoint": aws["AWS_ENDPOINT_URL_S3"],
        "s3.access-key-id": aws["AWS_ACCESS_KEY_ID"],
        "s3.secret-access-key": aws["AWS_SECRET_ACCESS_KEY"],
        "s3.region": aws["AWS_REGION"],
    }
    return _command(
        "from pyiceberg.catalog.noop import NoopCatalog; from pyiceberg.io.pyarrow import PyArrowFileIO;"
        " from pyiceberg.serializers import FromInputFile; from pyiceberg.table import Table;"
        f" io, place = PyArrowFileIO({json.dumps(options)}), {json.dumps(metadata)};"
        " table = FromInputFile.table_metadata(io.new_input(place));"
        ' print(Table(("table",), table, place, io, NoopCatalog("table")).scan().to_pandas())'
    )


def _command(code: str) -> str:
    # Texts in the code are JSON's, which are Python's, too: in double quotes they can be read in a shell's single ones.
    return shlex.join([sys.executable, "-c", code])
