"""A snapshot's manifest as a SQLite file: shardyfusion's form, written and read again, or refused within bounds."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from contextlib import closing
from dataclasses import replace

import pytest

from safewriter.snapshots.errors import ManifestParseError
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.format.manifest import Manifest, Shard

SHARD = Shard(
    db_id=3,
    db_url="s3://lake/p/shards/run_id=r/db=00003/attempt=00-x",
    attempt=0,
    row_count=2,
    db_bytes=4096,
    min_key=1,
    max_key=2**63,
    checkpoint_id="c",
    writer_info={"stage_id": 1},
    sha256="0" * 64,
)
MANIFEST = Manifest(
    run_id="r",
    created_at="2026-11-22T00:00:00+00:00",
    num_dbs=8,
    s3_prefix="s3://lake/p",
    key_col="id",
    db_path_template="db={db_id:05d}",
    shard_prefix="shards",
    key_encoding=KeyEncoding.U64BE,
    sharding={"strategy": "hash", "hash_algorithm": "xxh3_64"},
    shards=(SHARD,),
    custom={"team": "a"},
)


def changed(statement: str) -> bytes:
    """Return the manifest after an SQL statement."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(MANIFEST.encode())
        connection.execute(statement)
        connection.commit()
        return connection.serialize()


def test_a_manifest_comes_back_as_it_was() -> None:
    """This includes a manifest without shards, and one with keys that are not JSON."""
    for manifest in (MANIFEST, replace(MANIFEST, shards=()), replace(MANIFEST, shards=(replace(SHARD, min_key=None),))):
        assert Manifest.decode(manifest.encode(), "m") == manifest


def test_a_manifest_is_a_file_of_format_4() -> None:
    """It has the format's tables, columns, and members of `sharding`."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(MANIFEST.encode())
        columns = {
            table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for table in ("build_meta", "shards")
        }
        meta = connection.execute("SELECT sharding, format_version, custom FROM build_meta")
        sharding, version, custom = meta.fetchone()
        found = connection.execute("SELECT min_key, max_key, writer_info FROM shards").fetchall()
    assert " ".join(columns["build_meta"]) == (
        "run_id created_at num_dbs s3_prefix key_col sharding db_path_template shard_prefix format_version key_encoding"
        " custom"
    )
    assert " ".join(columns["shards"][:9]) == (
        "db_id db_url attempt row_count db_bytes min_key max_key checkpoint_id writer_info"
    )
    assert (json.loads(sharding), version) == ({"strategy": "hash", "hash_algorithm": "xxh3_64"}, 4)
    assert json.loads(custom) == {"team": "a"}
    assert found == [("1", str(2**63), '{"stage_id": 1}')]


def test_keys_that_are_no_json_are_null() -> None:
    """A manifest cannot hold raw bytes as keys."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(replace(MANIFEST, shards=(replace(SHARD, min_key=None, max_key=None),)).encode())
        assert connection.execute("SELECT min_key, max_key FROM shards").fetchall() == [(None, None)]


PEER_META = """CREATE TABLE build_meta (
    run_id           TEXT    NOT NULL,
    created_at       TEXT    NOT NULL,
    num_dbs          INTEGER NOT NULL,
    s3_prefix        TEXT    NOT NULL,
    key_col          TEXT    NOT NULL,
    sharding         TEXT    NOT NULL,
    db_path_template TEXT    NOT NULL,
    shard_prefix     TEXT    NOT NULL,
    format_version   INTEGER NOT NULL,
    key_encoding     TEXT    NOT NULL,
    custom           TEXT    NOT NULL DEFAULT '{}'
)"""
PEER_SHARDS = """CREATE TABLE shards (
    db_id         INTEGER NOT NULL PRIMARY KEY,
    db_url        TEXT,
    attempt       INTEGER NOT NULL,
    row_count     INTEGER NOT NULL,
    db_bytes      INTEGER NOT NULL,{}
    min_key       TEXT,
    max_key       TEXT,
    checkpoint_id TEXT,
    writer_info   TEXT    NOT NULL DEFAULT '{{}}'
)"""
"""The statements in shardyfusion's source."""


DEEP = '{"a":' + "[" * 100 + "]" * 100 + "}"


@pytest.mark.parametrize("sidecar", ["", "\n    sidecar_decompressed_bytes INTEGER,"])
def test_a_manifest_of_shardyfusion_is_read(sidecar: str) -> None:
    """It has no digests, and its columns may be null where ours are not."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(MANIFEST.encode())
        connection.executescript(
            f"ALTER TABLE build_meta RENAME TO m; ALTER TABLE shards RENAME TO s; {PEER_META};"
            f"{PEER_SHARDS.format(sidecar)}; INSERT INTO build_meta SELECT * FROM m;"
            "INSERT INTO shards (db_id, db_url, attempt, row_count, db_bytes, min_key, max_key)"
            " SELECT db_id, db_url, attempt, row_count, db_bytes, min_key, max_key FROM s; DROP TABLE m; DROP TABLE s"
        )
        body = connection.serialize()
    assert Manifest.decode(body, "m") == replace(
        MANIFEST, shards=(replace(SHARD, sha256=None, checkpoint_id="", writer_info={}),)
    )


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE beside (a)",
        "CREATE INDEX i ON shards (attempt)",
        "CREATE VIEW v AS SELECT 1",
        "ALTER TABLE shards ADD COLUMN more",
        "ALTER TABLE shards DROP COLUMN sha256",
        "ALTER TABLE build_meta DROP COLUMN custom",
        "ANALYZE",
    ],
)
def test_a_manifest_holds_nothing_beside_its_tables(statement: str) -> None:
    """SQLite loads the whole schema before it reads a table."""
    with pytest.raises(ManifestParseError, match=r"its schema has '\w+ \w+', which is no table as writers make them"):
        Manifest.decode(changed(statement), "m")


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE build_meta SET format_version = 3", "format 3"),
        ("UPDATE build_meta SET sharding = '[]'", "no JSON object"),
        ("UPDATE shards SET db_id = 8", "beyond the 8"),
        ("UPDATE shards SET db_id = -1", "db_id is -1"),
        ("DELETE FROM build_meta", "values to unpack"),
        ("DROP TABLE shards", "no plain table shards"),
        ("UPDATE shards SET sha256 = '/etc/' || sha256", "not 64 hexadecimal digits"),
        ("UPDATE shards SET sha256 = upper(replace(sha256, '0', 'a'))", "not 64 hexadecimal digits"),
        ("UPDATE shards SET sha256 = sha256 || char(10)", "not 64 hexadecimal digits"),
        ("UPDATE shards SET sha256 = 7", "not 64 hexadecimal digits"),
        ("UPDATE shards SET sha256 = ''", "not 64 hexadecimal digits"),
        ("UPDATE shards SET db_url = '../elsewhere'", "not an S3 path"),
        ("UPDATE shards SET db_url = 'file:///etc'", "not an S3 path"),
        ("UPDATE shards SET db_url = x'00'", "no text"),
        ("UPDATE shards SET db_bytes = -1", "db_bytes is -1"),
        ("UPDATE shards SET db_bytes = 'many'", "db_bytes is 'many'"),
    ],
)
def test_a_manifest_that_cannot_be_right_is_refused(statement: str, problem: str) -> None:
    """The error says what is wrong, and where."""
    with pytest.raises(ManifestParseError, match=f"^s3://lake/m .*{problem}"):
        Manifest.decode(changed(statement), "s3://lake/m")


def test_what_is_no_sqlite_file_is_no_manifest() -> None:
    """An empty object is none, either."""
    for body in (b"", b"{}"):
        with pytest.raises(ManifestParseError, match="no SQLite file"):
            Manifest.decode(body, "m")


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE build_meta SET num_dbs = 10001", "it has 10,001 shards; this code reads 10,000 at most"),
        (f"UPDATE build_meta SET sharding = '[{'0,' * 20_000}0]'", "sharding: has more than 20,000 values"),
        (f"UPDATE build_meta SET custom = '[{'0,' * 10_000}0]'", "custom: has more than 10,000 values"),
        (f"UPDATE build_meta SET custom = '{DEEP}'", "custom is nested more than 100 deep"),
        (f"UPDATE build_meta SET sharding = '{DEEP}'", "sharding is nested more than 100 deep"),
        (f"UPDATE shards SET writer_info = '[{'0,' * 32}0]'", "writer_info: has more than 32 values"),
        (f"UPDATE shards SET min_key = ' [{'0,' * 32}0]'", "min_key is .*no key"),
    ],
)
def test_a_manifest_of_more_than_a_build_writes_is_refused(statement: str, problem: str) -> None:
    """Each value takes memory, and the sweeper has little."""
    with pytest.raises(ManifestParseError, match=problem):
        Manifest.decode(changed(statement), "m")


def test_a_manifest_may_be_nested_as_deep_as_a_hundred() -> None:
    """The limit includes the outermost object."""
    deep = json.loads("[" * 98 + "0" + "]" * 98)
    assert Manifest.decode(replace(MANIFEST, custom={"a": deep}).encode(), "m").custom == {"a": deep}


def test_a_key_is_any_text() -> None:
    """It may have any number of commas and brackets."""
    shard = replace(SHARD, min_key="[{," * 99, max_key="{")
    assert Manifest.decode(replace(MANIFEST, shards=(shard,)).encode(), "m").shards == (shard,)


def test_of_many_descriptions_no_more_than_two_are_read() -> None:
    """A manifest has one row in `build_meta`; a file of a few megabytes has room for thousands."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(MANIFEST.encode())
        for _ in range(14):
            connection.execute("INSERT INTO build_meta SELECT * FROM build_meta")
        connection.commit()
        body = connection.serialize()
    tracemalloc.start()
    with pytest.raises(ManifestParseError):
        Manifest.decode(body, "m")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
