"""The command `soal orphans` checks its options, prints findings as table or JSON, and ends with an exit code."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from soal.console.problem import Problem
from soal.testing.s3 import EmbeddedS3, Match, Refuse, Rule
from tests.support.command_line import app
from tests.support.lake import CHECKPOINTS, LAKE, Lake
from tests.unit.safewriter.delta_log import DeltaLog, File
from tests.unit.soal.orphans.bench import data_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

DAYS_8_S = 8 * 86_400


class Bench:
    """A table on a test's S3, and the command."""

    def __init__(self, server: EmbeddedS3) -> None:
        self.server = server
        self.lake = Lake(server.observer(), server.endpoint, f"tables/{uuid.uuid4().hex}")
        log = DeltaLog(self.lake.store)
        log.create()
        log.append(File("part-1.parquet"))
        self.strange = data_key()
        self.lake.store.put(self.strange, b"left behind")
        server.wire.clear_rules()
        server.wire.clock_ahead_s = DAYS_8_S

    def soal(self, *arguments: str, table: str | None = None) -> tuple[int, str, str]:
        options = ("--endpoint-url", self.server.endpoint)
        done = CliRunner().invoke(app, ["orphans", table or self.lake.table, *options, *arguments])
        if isinstance(done.exception, Problem):
            return done.exception.exit_code, done.stdout, f"{done.exception} {done.exception.todo}"
        return done.exit_code, done.stdout, done.stderr


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=(LAKE, CHECKPOINTS)) as found:
        yield found


@pytest.fixture
def bench(server: EmbeddedS3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    for variable, value in server.environment().items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("SOAL_HOME", str(tmp_path))
    return Bench(server)


def parsed(out: str) -> Any:
    return json.loads(out)


def test_a_dry_run_is_the_default_and_delete_deletes(bench: Bench) -> None:
    """A dry run and a deletion report their findings as table or JSON; deleting needs a checkpoint bucket."""
    before = bench.lake.keys()
    code, out, said = bench.soal()
    assert (code, bench.strange in out, "nothing was changed" in said) == (0, True, True)
    code, _, said = bench.soal("--delete")
    assert (code, "--bucket" in said) == (2, True)
    assert bench.lake.keys() == before

    code, out, _ = bench.soal("--delete", "--bucket", CHECKPOINTS, "--json")
    assert (code, [one["deleted"] for one in parsed(out)["orphans"]]) == (0, [True])
    assert bench.lake.keys() == before - {bench.strange}


def test_who_says_that_nobody_guards_the_table_needs_no_bucket(bench: Bench) -> None:
    """With --unguarded no bucket is needed, but files with a SafeWriter prefix are held."""
    marked = f"sw-0123456789ab-1-0123456789abcdef-{data_key()}"
    bench.lake.store.put(marked, b"")
    code, out, _ = bench.soal("--delete", "--unguarded", "--json")
    assert (code, parsed(out)["openWrites"]) == (0, None)
    assert {one["key"]: one["deleted"] for one in parsed(out)["orphans"]} == {bench.strange: True, marked: False}


def test_the_bound_is_the_users(bench: Bench) -> None:
    """An age below nine hours needs --allow-young."""
    code, out, _ = bench.soal("--older-than", "30d", "--json")
    assert (code, parsed(out)["orphans"], parsed(out)["young"]["files"]) == (0, [], 1)
    code, _, said = bench.soal("--older-than", "30m")
    assert (code, "less than nine hours" in said) == (2, True)
    assert bench.soal("--older-than", "30m", "--allow-young")[0] == 0


@pytest.mark.parametrize("table", ["lake/table", "s3a://soal-lake", "s3a://soal-lake/a/../b"])
def test_a_table_is_a_path_on_s3(bench: Bench, table: str) -> None:
    """A table that is not a path on S3 is a usage error."""
    assert bench.soal(table=table)[0] == 2


@pytest.mark.parametrize("bucket", ["x", "UPPER"])
def test_a_bucket_has_a_name(bench: Bench, bucket: str) -> None:
    """The bucket's name is checked first."""
    assert bench.soal("--bucket", bucket)[0] == 2


def test_a_table_that_cannot_be_judged_says_why(bench: Bench) -> None:
    """A missing table, or one with a newer protocol, is a problem with the reason."""
    code, _, said = bench.soal(table=f"s3a://{LAKE}/nothing/here")
    assert (code, "there is no Delta table" in said) == (1, True)
    DeltaLog(bench.lake.store).commit([{"protocol": {"minReaderVersion": 9, "minWriterVersion": 9}}])
    code, _, said = bench.soal()
    assert (code, "newer than this soal knows" in said) == (1, True)


def test_what_could_not_be_deleted_and_a_log_that_moves_have_their_exit_codes(bench: Bench) -> None:
    """A refused deletion exits with 1, a changed log with 75."""
    refusal = Rule(Match(operations={"DeleteObject"}), Refuse(403), times=None)
    bench.server.wire.add(refusal)
    code, out, _ = bench.soal("--delete", "--bucket", CHECKPOINTS, "--json")
    assert (
        code,
        ["AccessDenied" in (one["error"] or "") or "403" in one["error"] for one in parsed(out)["orphans"]],
    ) == (1, [True])
    bench.server.wire.clear_rules()
    bench.server.wire.add(Rule(Match(operations={"GetObject"}, key="00001.json"), Refuse(404)))
    code, _, said = bench.soal()
    assert (code, "run it again" in said) == (75, True)


def test_an_s3_that_refuses_is_named(bench: Bench) -> None:
    """If S3 refuses, the problem names it and the needed permissions."""
    bench.server.wire.add(Rule(Match(operations={"ListObjectsV2"}), Refuse(403), times=None))
    code, _, said = bench.soal()
    assert (code, "LIST" in said) == (1, True)
