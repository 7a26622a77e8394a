"""`soal recover` and `soal runs` on what a killed write to an Iceberg table has staged: a real S3 endpoint and SQL
catalog, no Spark.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from scripts.emulator import EmbeddedS3
from scripts.soal.app import app
from tests.unit.safewriter.tables.iceberg.bench import Bench, contents

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.table.metadata import TableMetadata


class Killed:
    """A write that was staged, and whose owner's deadline lies far behind."""

    def __init__(self, s3: EmbeddedS3, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for variable, value in s3.environment().items():
            monkeypatch.setenv(variable, value)
        self.endpoint = s3.endpoint
        with monkeypatch.context() as patched:
            self.bench = Bench(folder, patched)
            self.bench.stage(self.bench.claim())
        client = s3.observer()
        for key, body in contents(self.bench.lake):
            client.put_object(Bucket="lake", Key=key, Body=body)
        for key, body in contents(self.bench.bucket):
            text = body
            if key.startswith("checkpoints/"):
                document = json.loads(body)
                document["attempts"][0]["deadline_ms"] = 1_000
                text = json.dumps(document).encode()
            client.put_object(Bucket="checkpoints", Key=key, Body=text)

    def soal(self, *arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, [*arguments, "--endpoint-url", self.endpoint, "--bucket", "checkpoints"])
        return done.exit_code, done.stdout

    def metadata(self) -> TableMetadata:
        return self.bench.catalog.load_table("db.t").metadata


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Killed]:
    with EmbeddedS3(buckets=["lake", "checkpoints"]) as s3:
        yield Killed(s3, tmp_path, monkeypatch)


def test_what_was_staged_is_published_from_the_command_line(killed: Killed) -> None:
    """First as a dry run, which changes nothing; afterwards main shows it, and `soal runs` says so."""
    before = killed.metadata()
    code, out = killed.soal("recover", "--dry-run", "--json")
    (dry,) = json.loads(out)
    assert (code, dry["status"], dry["action"]) == (0, "committed", "settled")
    assert "COMMIT lite.db.t: set-snapshot-ref, remove-snapshot-ref" in dry["changes"]
    assert killed.metadata() == before

    assert killed.soal("recover", "--run", "run")[0] == 0
    after = killed.metadata()
    assert set(after.refs) == {"main"}
    assert after.current_snapshot_id != before.current_snapshot_id

    code, out = killed.soal("runs", "show", "run", "--json")
    assert code == 0, out
    assert [(write["table"], write["status"]) for write in json.loads(out)["writes"]] == [("lite.db.t", "committed")]
