"""A script and files of this machine in the local S3, and the tables that a run has changed there: `soal local run`."""

from __future__ import annotations

import json
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from soal.console.problem import Problem
from soal.local.names import CHECKPOINTS, DATA, SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_s3 import S3Client

    from soal.target import Target

_COMMIT: Final = re.compile(r"(.+)/(?:(_delta_log)/\d{20}\.json|(metadata)/[^/]+\.metadata\.json|_SUCCESS)")
"""The object with which a write to Delta, to Iceberg, or of Spark's other files ends."""

Commits = frozenset[tuple[str, str, str]]
"""Bucket, key and time of each commit."""


@dataclass(frozen=True, slots=True)
class Written:
    """A table or a folder of files that a run has changed. `read` is the command that prints it, if there is one."""

    location: str
    kind: str
    read: str | None


def event_of(client: S3Client, script: Path, arguments: Sequence[str]) -> dict[str, Any]:
    """Upload a script, and each file that an argument names (`FILE` or `--name=FILE`); return the event, whose
    arguments name the uploaded files. Raises `Problem` for what is no script, and for two files of one name.
    """
    if script.suffix != ".py" or not script.is_file():
        raise Problem(
            f"{script}: {'not a Python script' if script.is_file() else 'there is no such file'}",
            todo="name a script: soal local run [options] my_job.py [its arguments]",
        )
    files: dict[str, Path] = {}
    passed = [_passed(argument, files) for argument in arguments]
    client.upload_file(str(script), SCRIPTS, script.name)
    for name, path in files.items():
        client.upload_file(str(path), DATA, name)
    return {"entryPoint": f"s3://{SCRIPTS}/{script.name}", "entryPointArguments": passed}


def _passed(argument: str, files: dict[str, Path]) -> str:
    """Return the argument for the script; add the file that it names to `files`."""
    option, equals, value = argument.partition("=") if argument.startswith("-") else ("", "", argument)
    path = Path(value).absolute()
    if not value or not path.is_file():
        return argument
    if files.setdefault(path.name, path) != path:
        raise Problem(f"two files are called {path.name}: {files[path.name]}, {path}", todo="rename one of them")
    return f"{option}{equals}s3a://{DATA}/{path.name}"


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

    table = f"DeltaTable({json.dumps(uri)}, storage_options={json.dumps(options(aws))})"
    return _command(f"from deltalake import DeltaTable; print({table}.to_pandas())")


def _iceberg(metadata: str, aws: Mapping[str, str]) -> str:
    options = {
        "s3.endpoint": aws["AWS_ENDPOINT_URL_S3"],
        "s3.access-key-id": aws["AWS_ACCESS_KEY_ID"],
        "s3.secret-access-key": aws["AWS_SECRET_ACCESS_KEY"],
        "s3.region": aws["AWS_REGION"],
    }
    return _command(
        "from pyiceberg.table import StaticTable;"
        f" print(StaticTable.from_metadata({json.dumps(metadata)}, {json.dumps(options)}).scan().to_pandas())"
    )


def _command(code: str) -> str:
    # Texts in the code are JSON's, which are Python's, too: in double quotes they can be read in a shell's single ones.
    return shlex.join([sys.executable, "-c", code])
