"""`soal recover` settles a killed Delta write on the tests' S3: dry run, exit codes, refusals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from soal.console.problem import Problem
from tests.support.command_line import app
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from soal.testing.s3 import EmbeddedS3

BUCKET = "soal-recover"


class Bench:
    """A killed write on the tests' S3, in a checkpoint bucket of its own, and `soal recover` on it."""

    def __init__(self, s3: EmbeddedS3, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for variable, value in s3.environment().items():
            monkeypatch.setenv(variable, value)
        self.endpoint = s3.endpoint
        self.client = s3.client()
        self.name = name
        if BUCKET not in [row["Name"] for row in self.client.list_buckets()["Buckets"]]:
            self.client.create_bucket(Bucket=BUCKET)
        self.world = World(table=f"s3://{BUCKET}/{name}/table")
        self.world.job().begin()
        for key, body in self.world.lake.contents().items():
            self.client.put_object(Bucket=BUCKET, Key=f"{name}/table/{key}", Body=body)

    def put(self, *, dead: bool) -> None:
        """Put the document, with a deadline far in the past or the future, and its marker."""
        for key, body in self.world.bucket.contents().items():
            if key.startswith("checkpoints/"):
                document = json.loads(body)
                attempt = document["attempts"][0]
                attempt["deadline_ms"] = 1_000 if dead else 2**42
                commit = f"{self.name}/table/{key_of(attempt['version_before'])}"  # the S3 dates it now
                modified = self.client.head_object(Bucket=BUCKET, Key=commit)["LastModified"]
                attempt["modified_ms"] = int(modified.timestamp() * 1000)
                body = json.dumps(document).encode()  # noqa: PLW2901 - as it was, but for the times
            self.client.put_object(Bucket=BUCKET, Key=f"{self.name}/{key}", Body=body)

    def soal(self, *arguments: str) -> tuple[int, str, str]:
        options = ("--endpoint-url", self.endpoint, "--bucket", f"{BUCKET}/{self.name}")
        done = CliRunner().invoke(app, ["recover", *arguments, *options])
        if isinstance(done.exception, Problem):
            return done.exception.exit_code, done.stdout, str(done.exception)
        return done.exit_code, done.stdout, done.stderr

    def keys(self) -> set[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{self.name}/")
        return {row["Key"].removeprefix(f"{self.name}/") for page in pages for row in page.get("Contents", ())}


@pytest.fixture
def bench(s3: EmbeddedS3, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(s3, request.node.name, monkeypatch)


def test_a_killed_write_is_found_by_its_marker_settled_and_cleaned(bench: Bench) -> None:
    """A dry run first changes nothing; after the real run there is nothing left to do."""
    bench.put(dead=True)
    before = bench.keys()
    code, out, said = bench.soal("--dry-run", "--json")
    (dry,) = json.loads(out)
    assert (code, dry["status"], dry["action"]) == (0, "rolled_back", "settled")
    assert f"PUT s3://{BUCKET}/{bench.name}/table/{key_of(2)}" in dry["changes"]
    assert ("nothing was changed" in said, bench.keys()) == (True, before)

    code, out, _ = bench.soal("--run", "run")
    assert (code, "rolled_back" in out, "settled" in out) == (0, True, True)
    left = bench.keys()
    assert f"table/{key_of(2)}" in left
    assert not [key for key in left if key.startswith(("open/", "table/sw-"))]
    assert len([key for key in left if key.startswith("audit/")]) == 1
    assert json.loads(bench.soal("--json")[1]) == []


def test_what_lives_is_left_and_a_verdict_by_hand_needs_an_unknown_write(bench: Bench) -> None:
    """Exit code 75 means try again later; a refusal changes nothing."""
    bench.put(dead=False)
    before = bench.keys()
    code, out, _ = bench.soal("--json")
    assert (code, json.loads(out)[0]["action"]) == (75, "alive")
    code, out, said = bench.soal("--run", "run", "--verdict", "committed", "--reason", "I know it")
    assert (code, out, "says in_progress" in said) == (2, "", True)
    assert bench.soal("--run", "run", "--verdict", "committed", "--reason", "x", "--dry-run")[0] == 2
    assert bench.soal("--run", "another")[0] == 1
    assert bench.keys() == before
