"""`soal recover` and `soal runs` on what a killed write to an Iceberg table has staged: a real S3 endpoint and SQL
catalog, no Spark.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from safewriter.state import CommitPoint
from scripts.emulator import EmbeddedS3
from scripts.soal.app import app
from tests.unit.safewriter.tables.iceberg.bench import Bench, contents

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.table.metadata import TableMetadata


class Killed:
    """A table and what attempts have staged, in memory until `put`; no owner has ended well."""

    def __init__(self, s3: EmbeddedS3, folder: Path, patched: pytest.MonkeyPatch) -> None:
        for variable, value in s3.environment().items():
            patched.setenv(variable, value)
        self._s3, self.endpoint = s3, s3.endpoint
        self._in_memory = pytest.MonkeyPatch()
        self.bench = Bench(folder, self._in_memory)

    def put(self, *, dead: bool = True) -> None:
        """Put all of it on S3, the owner's deadline far behind or far ahead."""
        self.close()
        client = self._s3.observer()
        for key, body in contents(self.bench.lake):
            client.put_object(Bucket="lake", Key=key, Body=body)
        for key, body in contents(self.bench.bucket):
            text = body
            if key.startswith("checkpoints/"):
                document = json.loads(body)
                document["attempts"][0]["deadline_ms"] = 1_000 if dead else 2**42
                text = json.dumps(document).encode()
            client.put_object(Bucket="checkpoints", Key=key, Body=text)

    def close(self) -> None:
        """Let pyiceberg find the S3 that the environment names."""
        self._in_memory.undo()

    def soal(self, *arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, [*arguments, "--endpoint-url", self.endpoint, "--bucket", "checkpoints"])
        return done.exit_code, done.stdout

    def metadata(self) -> TableMetadata:
        return self.bench.catalog.load_table("db.t").metadata

    def rows(self) -> int:
        snapshot = self.metadata().current_snapshot()
        assert snapshot is not None
        assert snapshot.summary is not None
        return int(snapshot.summary.get("total-records") or 0)

    def keys(self) -> set[str]:
        """All that lies on S3."""
        return {f"{bucket}/{key}" for bucket in ("lake", "checkpoints") for key in self._s3.keys(bucket)}

    def data(self) -> set[str]:
        return {key.rsplit("/", 1)[-1].removesuffix(".parquet") for key in self.keys() if key.endswith(".parquet")}


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Killed]:
    with (
        EmbeddedS3(buckets=["lake", "checkpoints"]) as s3,
        contextlib.closing(Killed(s3, tmp_path, monkeypatch)) as one,
    ):
        yield one


def test_what_was_staged_is_published_from_the_command_line(killed: Killed) -> None:
    """First as a dry run, which changes nothing; afterwards main shows it, and `soal runs` says so."""
    killed.bench.stage(killed.bench.claim())
    killed.put()
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


@pytest.mark.matrix
def test_a_dry_run_on_a_main_that_has_moved_leaves_not_even_a_manifest(killed: Killed) -> None:
    """Afterwards the append is applied again for good, beside what others have appended."""
    killed.bench.stage(killed.bench.claim())
    killed.bench.add("main", "foreign-1")
    killed.put()
    before, keys = killed.metadata(), killed.keys()
    code, out = killed.soal("recover", "--dry-run", "--json")
    (dry,) = json.loads(out)
    assert (code, dry["status"], dry["action"]) == (0, "committed", "settled")
    assert "COMMIT lite.db.t: add-snapshot, set-snapshot-ref, remove-snapshot-ref" in dry["changes"]
    assert (killed.metadata(), killed.keys()) == (before, keys)

    assert killed.soal("recover")[0] == 0
    assert (killed.rows(), set(killed.metadata().refs)) == (30, {"main"})
    assert killed.data() == {"foreign-0", "foreign-1", "ours"}
    assert json.loads(killed.soal("recover", "--json")[1]) == []


@pytest.mark.matrix
@pytest.mark.parametrize("commit_point", [CommitPoint.WRITE, CommitPoint.SUCCESS])
def test_what_is_not_to_count_is_dropped_from_the_command_line(killed: Killed, commit_point: CommitPoint) -> None:
    """Without its `success()` where only that counts; or in conflict with what others have committed since."""
    conflict = commit_point is CommitPoint.WRITE
    killed.bench.stage(killed.bench.claim(commit_point), operation="overwrite")
    if conflict:
        killed.bench.add("main", "foreign-1")
    killed.put()
    code, out = killed.soal("recover", "--json")
    (found,) = json.loads(out)
    assert (code, found["status"], found["action"]) == (0, "rolled_back", "settled")
    assert killed.data() == ({"foreign-0", "foreign-1"} if conflict else {"foreign-0"})
    assert set(killed.metadata().refs) == {"main"}
    (write,) = json.loads(killed.soal("runs", "show", "run", "--json")[1])["writes"]
    assert (write["status"], ("conflict" in write["reason"])) == ("rolled_back", conflict)


@pytest.mark.matrix
def test_what_lives_is_left(killed: Killed) -> None:
    """Exit code 75 says to come again; nothing that is staged is touched."""
    killed.bench.stage(killed.bench.claim())
    killed.put(dead=False)
    before, keys = killed.metadata(), killed.keys()
    code, out = killed.soal("recover", "--json")
    assert (code, json.loads(out)[0]["action"]) == (75, "alive")
    assert (killed.metadata(), killed.keys()) == (before, keys)
