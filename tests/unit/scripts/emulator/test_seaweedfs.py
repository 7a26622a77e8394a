"""SeaweedFS serves an S3 and an Iceberg catalog, and ends with whoever has started it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from scripts.emulator import seaweedfs
from scripts.emulator.seaweedfs import SeaweedFS
from scripts.provision.place import ROOT
from soal.local.names import CREDENTIALS, REGION
from soal.testing.s3 import EmbeddedS3
from tests.support.processes import has_ended
from tests.support.waiting import until

pytestmark = pytest.mark.slow


def test_its_catalog_is_reached_through_the_wire() -> None:
    """A client logs in by OAuth, and writes a table whose files and commits are in the trace."""
    with SeaweedFS() as backend, EmbeddedS3(backend=backend) as s3:
        files = {
            "s3.endpoint": s3.endpoint,
            "s3.region": REGION,
            "s3.access-key-id": CREDENTIALS["AWS_ACCESS_KEY_ID"],
            "s3.secret-access-key": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        }
        catalog = load_catalog("lake", **backend.catalog(s3, "warehouse"), **files)
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", schema=pa.schema([("id", pa.int64())]))
        table.append(pa.table({"id": [1, 2, 3]}))

        assert catalog.load_table("db.t").scan().to_arrow().num_rows == 3
        changes = [one.key for one in s3.trace() if one.operation == "CatalogChange"]
        assert changes[-1] == "v1/warehouse/namespaces/db/tables/t"
        assert {one.key_class for one in s3.trace() if one.bucket == "warehouse"} >= {"data", "iceberg/manifest-list"}


def test_it_ends_with_a_process_that_is_killed() -> None:
    """Neither the server nor its files stay."""
    code = (
        "from scripts.emulator.seaweedfs import SeaweedFS\n"
        "with SeaweedFS() as one: print(one._log.parent, flush=True); input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-P", "-c", code],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        servers = psutil.Process(process.pid).children(recursive=True)
        process.kill()
    assert len(servers) == 2
    assert until(lambda: all(has_ended(one) for one in servers) and not folder.exists())


def test_a_server_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has its own last words."""
    monkeypatch.setattr(SeaweedFS, "_options", lambda *_: ["-dir=/proc/none"])
    with pytest.raises(RuntimeError, match=re.compile(r"did not start.*/proc/none", re.DOTALL)), SeaweedFS():
        pass


def test_a_missing_program_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the command that installs it."""
    monkeypatch.setattr(seaweedfs, "_PROGRAM", tmp_path / "weed")
    with pytest.raises(FileNotFoundError, match="run scripts/setup"), SeaweedFS():
        pass
