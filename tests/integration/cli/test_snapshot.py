"""`soal snapshot …` on the tests' S3."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

import soal.snapshots.report
from safewriter.objects.s3 import S3ObjectStore
from safewriter.objects.store import StoreError
from safewriter.snapshots.format.current import CURRENT
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.write.publish import Publisher
from soal.console.problem import Problem
from soal.snapshots.build_command import frame_of
from soal.testing.s3 import Match, Refuse, Rule
from tests.support.command_line import app
from tests.support.snapshots import as_slatedb, build, publish
from tests.support.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safewriter.snapshots.format.current import Current
    from soal.snapshots.build_command import Format
    from soal.testing.s3 import EmbeddedS3
    from tests.integration.cli.conftest import Soal

BUCKET = "soal-snapshots"
SCHEMA = json.loads(Path(soal.snapshots.report.__file__).with_name("report.schema.json").read_text())
T0 = datetime(2026, 11, 1, tzinfo=UTC)
T1 = datetime(2026, 11, 2, tzinfo=UTC)
ROWS = {number: f"value {number}".encode() for number in range(50)}


class Bench:
    """A prefix of its own on the tests' S3, and `soal snapshot …` on it."""

    def __init__(self, s3: EmbeddedS3, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for variable, value in s3.environment().items():
            monkeypatch.setenv(variable, value)
        self.endpoint = s3.endpoint
        self.client = s3.client()
        if BUCKET not in [row["Name"] for row in self.client.list_buckets()["Buckets"]]:
            self.client.create_bucket(Bucket=BUCKET)
        self.prefix = f"s3://{BUCKET}/{name}"
        self.store = S3ObjectStore(self.client, BUCKET, name)

    def publish(self, run: str, created: datetime = T0, rows: Any = None, **how: Any) -> str:
        return publish(self.store, rows or ROWS, run, created=created, **how)

    def soal(self, command: str, *arguments: str) -> tuple[int, str, str]:
        return called(command, self.prefix, *arguments, "--endpoint-url", self.endpoint)

    def told(self, name: str, command: str, *arguments: str, code: int = 0) -> Any:
        """Run a command with `--json`; return its document, which fits the schema."""
        exit_code, out, err = self.soal(command, *arguments, "--json")
        assert exit_code == code, err
        document = json.loads(out)
        self.validate(name, document)
        return document

    def age(self) -> None:
        """Wait until all objects are older than zero, by the server's clock in whole seconds."""
        newest = max(listed.last_modified for listed in self.store.list(""))
        assert until(lambda: (found := self.store.get(CURRENT)) is not None and found.server_date > newest)

    @staticmethod
    def validate(name: str, document: Any) -> None:
        Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}).validate(document)


def called(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["snapshot", *arguments])
    if isinstance(done.exception, Problem):
        return done.exception.exit_code, done.stdout, f"{done.exception} / {done.exception.todo}"
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def bench(s3: EmbeddedS3, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(s3, request.node.name, monkeypatch)


@pytest.mark.parametrize(
    "arguments",
    [
        ("info",),
        ("get", "1"),
        ("multiget", "1"),
        ("route", "1"),
        ("health",),
        ("history",),
        ("rollback", "--back", "1"),
        ("verify",),
        ("cleanup",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_before_the_first_publication_there_is_nothing(bench: Bench, arguments: tuple[str, ...]) -> None:
    """Exit code 1, and a sentence that says so."""
    code, out, err = bench.soal(*arguments)
    assert (code, out) == (1, "")
    assert "published" in err


def test_a_snapshot_is_described(bench: Bench) -> None:
    """The current one, or another one by its manifest; for a person and for a program."""
    first = bench.publish("first")
    second = bench.publish("second", T1)
    code, out, _ = bench.soal("info")
    assert code == 0
    assert f"{bench.prefix}: run second, built 2026-11-02T00:00:00+00:00, current" in out
    assert "50 rows" in out
    assert "in 8 of 8 shards; key id (u64be), sharded by hash" in out
    told = bench.told("SnapshotReport", "info", "--ref", first)
    assert (told["runId"], told["isCurrent"], told["rows"], len(told["shards"])) == ("first", False, 50, 8)
    assert bench.told("SnapshotReport", "info")["manifestRef"] == second
    assert "run first, built 2026-11-01T00:00:00+00:00, not current" in bench.soal("info", "--ref", first)[1]
    assert bench.soal("info", "--ref", f"{bench.prefix}/manifests/none/manifest")[0] == 1


def test_a_value_is_printed_and_nothing_else(bench: Bench) -> None:
    """It is text, hexadecimal digits or base64; exit code 1 for a missing key."""
    bench.publish("r", rows={1: b"one [bold]", 2: b"\xff"})
    assert bench.soal("get", "1")[:2] == (0, "one [bold]\n")
    assert bench.soal("get", "2", "--as", "hex")[:2] == (0, "ff\n")
    assert bench.soal("get", "2", "--as", "base64")[:2] == (0, "/w==\n")
    assert bench.soal("get", "2") == (1, "", "the value is not text / give --as hex, or --as base64")
    assert bench.soal("get", "3") == (1, "", "the snapshot has no key 3\n")
    assert bench.soal("get", "x")[0] == 2
    told = bench.told("ValueReport", "get", "1")
    assert (told["key"], told["found"], told["value"], told["form"]) == (1, True, "one [bold]", "text")
    assert told["shard"] == 6
    missing = bench.told("ValueReport", "get", "3", code=1)
    assert (missing["found"], missing["value"]) == (False, None)


def test_values_of_another_snapshot_are_read_by_its_manifest(bench: Bench) -> None:
    """One, several, and the shard of a key."""
    first = bench.publish("first", rows={1: b"old", 2: b"too"})
    bench.publish("second", T1, rows={1: b"new"})
    assert bench.soal("get", "1", "--ref", first)[:2] == (0, "old\n")
    told = bench.told("ValuesReport", "multiget", "1", "2", "--ref", first)
    assert [(row["key"], row["value"]) for row in told["values"]] == [(1, "old"), (2, "too")]
    assert bench.told("RouteReport", "route", "1", "--ref", first)["manifestRef"] == first


def test_several_values_are_printed_in_order(bench: Bench) -> None:
    """Exit code 1 if one is missing, which is named."""
    bench.publish("r", rows={1: b"one [bold]", 2: b"two"})
    code, out, _ = bench.soal("multiget", "2", "1")
    assert code == 0
    assert out.index("two") < out.index("one [bold]")
    code, out, err = bench.soal("multiget", "1", "3", "4", "--as", "hex")
    assert (code, err) == (1, "the snapshot has no key 3, 4\n")
    assert b"one [bold]".hex() in out
    told = bench.told("ValuesReport", "multiget", "1", "3", code=1)
    assert [row["found"] for row in told["values"]] == [True, False]
    assert bench.soal("multiget", "x")[0] == 2


def test_a_key_is_routed_without_a_fetch(bench: Bench) -> None:
    """To its shard's folder, if it has rows."""
    bench.publish("r", rows={1: b"one"})
    for shard in bench.store.list("shards/"):
        bench.store.delete(shard.key)
    told = bench.told("RouteReport", "route", "1")
    assert (told["shard"], told["dbUrl"].rpartition("/")[0].endswith("/db=00006")) == (6, True)
    assert bench.soal("route", "1")[1].startswith("shard 6: s3://")
    assert "it has no rows" in bench.soal("route", "2")[1]


def test_health_is_told_without_a_fetch(bench: Bench) -> None:
    """A shard that is gone or short, and a snapshot that is too old, are faults; exit code 1 then."""
    bench.publish("r", created=datetime.now(UTC))
    told = bench.told("HealthReport", "health", "--max-age", "1d")
    assert (told["isHealthy"], told["shards"], told["rows"], told["faults"]) == (True, 8, 50, [])
    assert abs(told["ageS"]) < 3600
    first, second = [shard.key for shard in bench.store.list("shards/")][:2]
    bench.store.delete(first)
    bench.store.put(second, b"short")
    code, out, _ = bench.soal("health")
    assert code == 1
    assert out.count("is not there") == out.count("has 5 bytes") == 1
    assert "2 faults" in out


def test_an_old_snapshot_is_not_healthy(bench: Bench) -> None:
    """By the time of its publication."""
    bench.publish("r")
    assert bench.soal("health")[0] == 0
    code, out, _ = bench.soal("health", "--max-age", "90m")
    assert (code, "it is too old" in out) == (1, True)


def test_a_description_reads_the_pointer_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it cannot call a snapshot current by another body."""
    ref = bench.publish("r")
    read: list[str] = []
    get = S3ObjectStore.get

    def counted(store: S3ObjectStore, key: str, **bound: int) -> object:
        read.append(key)
        return get(store, key, **bound)

    monkeypatch.setattr(S3ObjectStore, "get", counted)
    assert bench.told("SnapshotReport", "info", "--ref", ref)["isCurrent"]
    assert read.count(CURRENT) == 1


def test_a_key_may_be_bytes(bench: Bench) -> None:
    """In hexadecimal digits, or as text."""
    bench.publish("r", rows={b"\xff\x00": b"one", b"two": b"two"}, encoding=KeyEncoding.RAW)
    assert bench.soal("get", "ff00", "--hex-key")[:2] == (0, "one\n")
    assert bench.soal("get", "two")[:2] == (0, "two\n")
    assert bench.told("ValueReport", "get", "ff00", "--hex-key")["key"] == "ff00"


def test_the_history_says_which_is_current(bench: Bench) -> None:
    """The newest build is first; the list is as long as requested."""
    first, second = bench.publish("first"), bench.publish("second", T1)
    told = bench.told("HistoryReport", "history")
    assert [(one["manifestRef"], one["isCurrent"]) for one in told["snapshots"]] == [(second, True), (first, False)]
    code, out, err = bench.soal("history", "--limit", "1")
    assert (code, err) == (0, "1 older ones are not shown; --limit 0 shows all\n")
    assert "current" in out
    assert "first" not in out
    assert "first" in bench.soal("history", "--limit", "0")[1]


def test_a_rollback_says_what_it_did(bench: Bench) -> None:
    """--dry-run reports the plan; a repetition has nothing to do."""
    first, second = bench.publish("first", rows={1: b"old"}), bench.publish("second", T1)
    told = bench.told("RollbackReport", "rollback", "--back", "1", "--dry-run")
    assert (told["before"], told["after"], told["changed"], told["dryRun"]) == (second, first, False, True)
    assert "run first would be current" in bench.soal("rollback", "--run-id", "first", "--dry-run")[1]
    assert bench.told("SnapshotReport", "info")["manifestRef"] == second
    code, out, _ = bench.soal("rollback", "--run-id", "first")
    assert (code, out.splitlines()[0]) == (0, f"{bench.prefix}: run first is current now")
    assert bench.soal("get", "1")[1] == "old\n"
    assert "run first is current already" in bench.soal("rollback", "--ref", first)[1]
    assert bench.told("RollbackReport", "rollback", "--ref", second)["changed"]


def test_a_rollback_that_cannot_be_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """2 for a wrong call, 1 for a missing snapshot, 75 if another one was published meanwhile."""
    first = bench.publish("first")
    bench.publish("second", T1)
    assert bench.soal("rollback")[0] == 2
    assert bench.soal("rollback", "--back", "1", "--run-id", "first")[0] == 2
    assert bench.soal("rollback", "--back", "2")[0] == 1
    point = Publisher.point

    def slower(publisher: Publisher, *arguments: Any, **more: Any) -> Current:
        monkeypatch.setattr(Publisher, "point", point)
        bench.publish("third", T1)
        return point(publisher, *arguments, **more)

    monkeypatch.setattr(Publisher, "point", slower)
    code, _, err = bench.soal("rollback", "--ref", first)
    assert code == 75
    assert "soal snapshot history" in err


def test_a_sound_snapshot_is_told_from_another_one(bench: Bench) -> None:
    """Exit code 1, and the differing shard."""
    bench.publish("r")
    told = bench.told("VerifyReport", "verify")
    assert (told["isSound"], told["shards"], told["rows"], told["keys"]) == (True, 8, 50, 50)
    assert bench.told("VerifyReport", "verify", "--keys", "1")["keys"] == 8
    assert "sound; verified 8 shards, 50 rows; 50 keys" in bench.soal("verify")[1]
    key = next(listed.key for listed in bench.store.list("shards/"))
    bench.store.delete(key)
    told = bench.told("VerifyReport", "verify", code=1)
    assert [fault["what"] for fault in told["faults"]] == [f"{bench.prefix}/{key} is not there"]
    code, out, _ = bench.soal("verify")
    assert code == 1
    assert "1 faults" in out


def test_shards_that_were_not_read_are_told(bench: Bench) -> None:
    """These are shards in another database than SQLite."""
    publisher = Publisher(bench.store)
    manifest = as_slatedb(bench.store, build(bench.store, ROWS, "r", created=T0))
    publisher.publish(manifest, publisher.base())
    told = bench.told("VerifyReport", "verify")
    assert (told["isSound"], told["unread"], told["rows"]) == (True, 8, 0)
    assert "8 shards are in another database than SQLite, and were not read" in " ".join(
        bench.soal("verify")[1].split()
    )


def test_a_clean_up_says_what_it_removed(bench: Bench) -> None:
    """--dry-run reports the plan; young objects stay."""
    bench.publish("first")
    bench.publish("second", T1)
    build(bench.store, ROWS, "dead", created=T0)
    upload = bench.client.create_multipart_upload(
        Bucket=BUCKET,
        Key=f"{bench.store.uri('').removeprefix(f's3://{BUCKET}/')}shards/run_id=x/db=1/attempt=0/shard.db",
    )["UploadId"]
    told = bench.told("CleanupReport", "cleanup", "--keep-last", "1")
    assert (told["removals"], told["young"]) == ([], 8)
    assert bench.soal("cleanup", "--older-than", "0m")[0] == 2
    young = ("--keep-last", "1", "--older-than", "0m", "--allow-young")
    before = [listed.key for listed in bench.store.list("")]
    bench.age()
    told = bench.told("CleanupReport", "cleanup", *young, "--dry-run")
    assert {one["kind"] for one in told["removals"]} == {"manifest", "shard", "upload"}
    assert len(told["removals"]) == 18
    assert not any(one["removed"] for one in told["removals"])
    code, out, err = bench.soal("cleanup", *young, "--dry-run")
    assert (code, err) == (0, "nothing was changed\n")
    assert "18 objects" in out
    assert "may go; 1 snapshots stay" in out
    assert [listed.key for listed in bench.store.list("")] == before
    assert len([one for one in bench.store.uploads("shards/") if one.id == upload]) == 1
    code, out, _ = bench.soal("cleanup", *young)
    assert code == 0
    assert "were removed" in out
    assert not list(bench.store.uploads("shards/"))
    assert bench.told("VerifyReport", "verify")["isSound"]
    assert len(list(bench.store.list(""))) == 10


def test_a_build_that_lives_is_named(bench: Bench) -> None:
    """Its objects stay."""
    bench.publish("first")
    build(bench.store, ROWS, "alive", created=T0)
    record = {
        "run_id": "alive",
        "status": "running",
        "shard_prefix": "shards",
        "updated_at": "2026-11-01T00:00:00.000000Z",
        "lease_expires_at": "2126-11-01T00:00:00.000000Z",
    }
    bench.store.put("runs/x_run_id=alive_0123/run.yaml", json.dumps(record).encode())
    bench.age()
    told = bench.told("CleanupReport", "cleanup", "--older-than", "0m", "--allow-young")
    assert (told["living"], told["removals"]) == (["alive"], [])
    assert "run alive goes on" in bench.soal("cleanup", "--older-than", "0m", "--allow-young")[1]


@pytest.mark.parametrize(
    ("denied", "command"), [("_CURRENT", "info"), ("manifests/", "info"), ("manifests/", "get"), ("runs/", "cleanup")]
)
def test_what_may_not_be_read_is_no_absence(bench: Bench, s3: EmbeddedS3, denied: str, command: str) -> None:
    """A 403 does not show whether something is published, a manifest is complete, or a build is alive, and no other
    snapshot, let alone a rollback, would help.
    """
    bench.publish("first")
    build(bench.store, ROWS, "alive", created=T0)
    bench.store.put("runs/x_run_id=alive_0123/run.yaml", b"{}")
    bench.age()
    more = {"get": ("3",), "cleanup": ("--older-than", "0m", "--allow-young")}.get(command, ())
    before = [listed.key for listed in bench.store.list("")]
    s3.wire.add(Rule(Match(operations={"GetObject"}, key=f"/{denied}"), Refuse(403), times=None))
    try:
        code, _, said = bench.soal(command, *more)
    finally:
        s3.wire.clear_rules()
    assert (code, "denied, or not there" in said) == (1, True)
    assert "s3:GetObject" in said
    assert not any(
        words in said for words in ("nothing was published", "rollback", "the manifest s3", "snapshot history")
    )
    assert [listed.key for listed in bench.store.list("")] == before


def test_a_clean_up_that_was_refused_exits_with_1(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names what could not be removed."""
    bench.publish("first")
    build(bench.store, ROWS, "dead", created=T0)
    delete = S3ObjectStore.delete

    def refused(store: S3ObjectStore, key: str) -> None:
        if "db=00003" in key:
            raise StoreError("refused")
        delete(store, key)

    bench.age()
    monkeypatch.setattr(S3ObjectStore, "delete", refused)
    told = bench.told("CleanupReport", "cleanup", "--older-than", "0m", "--allow-young", code=1)
    assert [one["error"] for one in told["removals"] if one["error"]] == ["refused"]


def test_a_prefix_must_be_one(bench: Bench) -> None:
    """A local path is refused."""
    code, _, err = called("info", "/tmp/x", "--endpoint-url", bench.endpoint)
    assert code == 2
    assert "s3://bucket/prefix" in err


@pytest.mark.parametrize("arguments", [("get", "1"), ("verify",), ("rollback", "--back", "1")], ids=lambda one: one[0])
def test_a_package_that_is_missing_is_named(bench: Bench, arguments: tuple[str, ...]) -> None:
    """Exit code 2; the other commands need no such package."""
    bench.publish("r")
    program = "import sys; sys.modules['xxhash'] = None; from soal.app import main; main()"
    command, *rest = arguments
    call = [sys.executable, "-P", "-c", program, "snapshot", command, bench.prefix, *rest]
    done = subprocess.run(
        [*call, "--endpoint-url", bench.endpoint], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert "snapshots need the package xxhash" in done.stderr


@pytest.mark.spark
@pytest.mark.parametrize(
    "form", ["parquet", *(pytest.param(one, marks=pytest.mark.matrix) for one in ("csv", "json", "delta"))]
)
def test_files_of_each_format_are_read(bench: Bench, spark: SparkSession, form: Format) -> None:
    """The values have their types."""
    source = f"s3a://{BUCKET}/source-{form}"
    frame = spark.range(10).selectExpr("id * 7 AS id", "concat('value ', id) AS v")
    frame.write.format(form).options(header=True).mode("overwrite").save(source)
    found = frame_of(spark, [source], form)
    assert sorted((row["id"], row["v"]) for row in found.collect()) == [(n * 7, f"value {n}") for n in range(10)]


def test_a_delta_table_is_one_path() -> None:
    """The error comes before Spark starts."""
    with pytest.raises(Problem, match="one path"):
        frame_of(MagicMock(), ["s3a://a/b", "s3a://a/c"], "delta")


@pytest.mark.spark
@pytest.mark.matrix
def test_a_snapshot_is_built_by_a_process_of_its_own(bench: Bench, s3: EmbeddedS3, soal: Soal) -> None:
    """The new snapshot is current; a failed build reports its error and leaves the previous snapshot, and Java's output
    reaches the console.
    """
    lines = ["id,v", *(f"{number * 7},value {number}" for number in range(100))]
    bench.store.put("source/a.csv", "\n".join(lines).encode())
    given = ("--format", "csv", "--key", "id", "--value", "v", "--num-dbs", "3", "--endpoint-url", bench.endpoint)
    variables = {**s3.environment(), "PYSPARK_PYTHON": "another-python"}  # without this environment's packages
    source = bench.store.uri("source").replace("s3://", "s3a://")
    done = soal(
        "snapshot", "build", bench.prefix, "--from", source, "--run-id", "nightly", *given, "--json", **variables
    )
    assert done.code == 0, done.err
    bench.validate("BuildReport", done.json)
    assert (done.json["rowsRead"], done.json["rowsWritten"], done.json["shards"]) == (100, 100, 3)
    assert bench.soal("get", "693")[1] == "value 99\n"
    assert bench.told("VerifyReport", "verify")["isSound"]

    failed = soal("snapshot", "build", bench.prefix, "--from", f"{source}-none", *given, **variables)
    assert failed.code == 1
    assert "soal: nothing was published: [PATH_NOT_FOUND]" in failed.err

    bench.store.put("evil/a.csv", b"id,v\n1,a\n2,\x1b]52;c;aGk=\x07,c,d\n")
    evil = f"{source.removesuffix('source')}evil"
    failed = soal(
        *("snapshot", "build", bench.prefix, "--from", evil, *given, "--read-option", "mode=FAILFAST"), **variables
    )
    assert failed.code == 1
    assert "Malformed records are detected in record parsing: [2,\\x1b]52;c;aGk=\\x07" in failed.err
    assert "\x1b" not in failed.err
    assert sum(line.startswith("soal:") for line in failed.err.splitlines()) == 1
    assert bench.told("SnapshotReport", "info")["runId"] == "nightly"


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--num-dbs", "2", "--max-keys-per-shard", "5"),
        ("--num-dbs", "2", "--run-id", "a/b"),
        ("--num-dbs", "2", "--json-column", "v"),
        ("--num-dbs", "2", "--last-by", "v"),
        ("--cel", "key % 4"),
        ("--cel", "key % 4", "--cel-column", "key"),
    ],
)
def test_a_build_that_cannot_be_is_told_before_spark_starts(bench: Bench, options: tuple[str, ...]) -> None:
    """The exit code is 2."""
    code, _, err = bench.soal("build", "--from", "s3a://a/b", "--key", "id", "--value", "v", *options)
    assert (code, err.rpartition(" / ")[2]) == (2, "correct the options")
