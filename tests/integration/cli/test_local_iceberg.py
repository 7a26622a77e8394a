"""`soal local up --iceberg`: jobs and commands find the catalog `local` without any configuration."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import psutil
import pytest

from soal.target import local_target
from tests.support.processes import has_ended

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from .conftest import Soal

pytestmark = [pytest.mark.spark, pytest.mark.emulator, pytest.mark.matrix]

TABLE = "local.db.t"
EVENT = {
    "entryPoint": "s3://soal-scripts/jobs/accommodations_iceberg.py",
    "clientToken": "nightly",
    "entryPointArguments": ["--source", "s3a://soal-data/accommodations.csv", "--table", TABLE],
}


def reopen(client: S3Client, checkpoint: str) -> None:
    """Remove the verdict from a checkpoint document, as after a kill right after the commit."""
    bucket, _, key = checkpoint.removeprefix("s3://").partition("/")
    document = json.loads(client.get_object(Bucket=bucket, Key=key)["Body"].read())
    document["status"] = "in_progress"
    document["attempts"][0].update(deadline_ms=1_000, settled_ms=None)
    client.put_object(Bucket=bucket, Key=key, Body=json.dumps(document).encode())


def test_an_iceberg_table_from_its_creation_to_the_end_of_all_processes(own_soal: Soal) -> None:
    """The sample job creates the table and appends to it, guarded; `recover` reads the verdict from the catalog,
    `orphans` finds nothing, and `down` ends the server and the catalog's Java.
    """
    soal = own_soal
    up = soal("local", "up", "--iceberg", "--json")
    assert up.code == 0, up
    assert up.json["catalog"] in soal("local", "status").out
    assert soal("local", "up", "--iceberg", "--json").json["catalog"] == up.json["catalog"]
    server = psutil.Process(up.json["pid"])
    processes = [server, *server.children(recursive=True)]
    assert "java" in [process.name() for process in processes]

    answer = soal("local", "invoke", json.dumps(EVENT), "--json")
    assert answer.code == 0, answer
    (write,) = answer.json["writes"]
    assert (write["table"], write["format"], write["status"], write["rows"]) == (TABLE, "iceberg", "committed", 22_248)

    reopen(local_target(up.json["endpoint"]).client(), write["checkpoint"])
    settled = soal("recover", "--local", "--run", "nightly", "--json")
    assert [(one["table"], one["status"], one["action"]) for one in settled.json] == [(TABLE, "committed", "settled")]
    assert settled.code == 0
    found = soal("orphans", "--local", TABLE, "--json")
    assert (found.code, found.json["table"], found.json["orphans"]) == (0, TABLE, [])
    assert found.json["retained"]["files"] > 0

    assert soal("local", "down").code == 0
    left = [one for one in processes if not has_ended(one)]
    assert left == []
