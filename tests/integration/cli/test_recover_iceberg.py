"""`soal recover` and `soal runs` on a killed write to an Iceberg table: a real S3 endpoint, a SQL catalog, no Spark."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from safewriter.record.document import CommitPoint
from safewriter.tables.iceberg.table import name_of
from soal.testing.s3 import EmbeddedS3
from tests.support.command_line import app
from tests.unit.safewriter.tables.iceberg.bench import Bench, contents

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.table.metadata import TableMetadata


COMMIT_POINTS = [CommitPoint.WRITE, pytest.param(CommitPoint.SUCCESS, marks=pytest.mark.matrix)]


class Killed:
    """A table and its attempts' publications, in memory until `put`; no owner has ended well."""

    def __init__(self, s3: EmbeddedS3, folder: Path, patched: pytest.MonkeyPatch) -> None:
        for variable, value in s3.environment().items():
            patched.setenv(variable, value)
        patched.setenv("PYICEBERG_CATALOG__LITE__URI", f"sqlite:///{folder}/lite.db")
        self._s3, self.endpoint = s3, s3.endpoint
        self._in_memory = pytest.MonkeyPatch()
        self.bench = Bench(folder, self._in_memory)

    def put(self, *, dead: bool = True) -> None:
        """Put everything on S3, with the owner's deadline far in the past or the future."""
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
        """All keys on S3."""
        return {f"{bucket}/{key}" for bucket in ("lake", "checkpoints") for key in self._s3.keys(bucket)}


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Killed]:
    with (
        EmbeddedS3(buckets=["lake", "checkpoints"]) as s3,
        contextlib.closing(Killed(s3, tmp_path, monkeypatch)) as one,
    ):
        yield one


@pytest.mark.parametrize("commit_point", COMMIT_POINTS)
def test_what_is_not_published_is_fenced_off_from_the_command_line(killed: Killed, commit_point: CommitPoint) -> None:
    """A dry run first reports its plan without changes; then the table is unchanged, a tag fences the attempt off, and
    `soal runs` reports the write as rolled back.
    """
    name = name_of(killed.bench.claim(commit_point).document.attempt)
    head = killed.bench.refs()["main"]
    killed.put()
    before, keys = killed.metadata(), killed.keys()
    code, out = killed.soal("recover", "--dry-run", "--json")
    (dry,) = json.loads(out)
    assert (code, dry["status"], dry["action"]) == (0, "rolled_back", "settled")
    assert f"COMMIT lite.db.t: tag {name} on snapshot {head}" in dry["changes"]
    assert (killed.metadata(), killed.keys()) == (before, keys)

    code, out = killed.soal("recover", "--json")
    (found,) = json.loads(out)
    assert (code, found["status"], found["action"]) == (0, "rolled_back", "settled")
    after = killed.metadata()
    assert {reference: ref.snapshot_id for reference, ref in after.refs.items()} == {"main": head, name: head}
    assert (after.snapshots, killed.rows()) == (before.snapshots, 10)

    (write,) = json.loads(killed.soal("runs", "show", "run", "--json")[1])["writes"]
    assert (write["table"], write["status"]) == ("lite.db.t", "rolled_back")
    assert json.loads(killed.soal("recover", "--json")[1]) == []


@pytest.mark.parametrize("commit_point", COMMIT_POINTS)
def test_what_is_published_is_told_from_the_command_line(killed: Killed, commit_point: CommitPoint) -> None:
    """Whatever has followed it, and whatever its commit point: only `success()` publishes, and nothing is changed."""
    killed.bench.publish(killed.bench.claim(commit_point))
    killed.bench.add("main", "foreign-1")
    killed.put()
    before = killed.metadata()
    code, out = killed.soal("recover", "--run", "run", "--json")
    (found,) = json.loads(out)
    assert (code, found["status"], found["action"]) == (0, "committed", "settled")
    assert (killed.metadata(), killed.rows()) == (before, 30)
    (write,) = json.loads(killed.soal("runs", "show", "run", "--json")[1])["writes"]
    assert (write["table"], write["status"], write["rows"]) == ("lite.db.t", "committed", 10)


@pytest.mark.matrix
def test_what_lives_is_left(killed: Killed) -> None:
    """Exit code 75 means try again later; its publication is not fenced off."""
    killed.bench.claim()
    killed.put(dead=False)
    before, keys = killed.metadata(), killed.keys()
    code, out = killed.soal("recover", "--json")
    assert (code, json.loads(out)[0]["action"]) == (75, "alive")
    assert (killed.metadata(), killed.keys()) == (before, keys)
