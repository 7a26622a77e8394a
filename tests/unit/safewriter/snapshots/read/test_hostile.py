"""A writer below the prefix can neither hang nor exhaust a reader, nor lead it elsewhere. Without the protection these
tests hang, or take gigabytes, so each of them checks the error's text.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.objects.store import TooLarge
from safewriter.snapshots.errors import (
    ManifestParseError,
    ReaderStateError,
    ShardDamagedError,
    SnapshotError,
)
from safewriter.snapshots.format import database
from safewriter.snapshots.format.current import CURRENT, CURRENT_MAX_BYTES
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.format.manifest import MANIFEST_MAX_BYTES
from safewriter.snapshots.format.shard_file import TABLES
from safewriter.snapshots.keep.cleanup import cleanup
from safewriter.snapshots.keep.history import history
from safewriter.snapshots.keep.rollback import Target, rollback
from safewriter.snapshots.read.fetch import fetch
from safewriter.snapshots.read.reader import SnapshotReader
from safewriter.snapshots.read.source import Source
from safewriter.snapshots.read.verification import verify
from safewriter.snapshots.routing.expression import CelExpression
from safewriter.snapshots.write.publish import Publisher
from tests.support.snapshots import PREFIX, Bucket, Folder, build, publish, shard_body
from tests.unit.safewriter.snapshots.format.test_manifest import MANIFEST, SHARD, changed

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.snapshots.format.manifest import Manifest

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
T0 = datetime(2026, 11, 20, tzinfo=UTC)


def file_of(*statements: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        return connection.serialize()


def lying() -> bytes:
    """Return a shard whose schema lists an endless view as a table."""
    view = f"CREATE VIEW kv AS {ENDLESS} SELECT x AS k, x AS v FROM c"
    return file_of(
        "CREATE TABLE kv (k, v)",
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET sql = '{view}', rootpage = 0 WHERE name = 'kv'",
    )


def swapped() -> bytes:
    """Return a shard whose schema has a table by its names, and a view by its SQL."""
    return file_of(
        "CREATE TABLE kv (k BLOB PRIMARY KEY, v) WITHOUT ROWID",
        "CREATE TABLE real (k BLOB PRIMARY KEY, v)",
        "CREATE VIEW seen AS SELECT k, hex(k) AS v FROM real",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'TABLE kv', 'TABLE zz') WHERE name = 'kv'",
        "UPDATE sqlite_master SET sql = replace(sql, 'VIEW seen', 'VIEW kv') WHERE name = 'seen'",
    )


def beside(body: bytes, *statements: str) -> bytes:
    """Return a file with a further table and changes of its schema."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.deserialize(body)
        for statement in ("CREATE TABLE beside (a, b)", "PRAGMA writable_schema = ON", *statements):
            connection.execute(statement)
        return connection.serialize()


def hidden(body: bytes, table: str) -> bytes:
    """Return a file whose table is a view for SQLite, which reads a name up to a NUL."""
    view = f"CREATE VIEW {table} AS {ENDLESS} SELECT x AS k, x AS v FROM c"
    return beside(
        body,
        f"DELETE FROM sqlite_master WHERE name IN ('{table}', 'beside')",
        f"INSERT INTO sqlite_master VALUES ('view', '{table}' || char(0) || 'x', '{table}', 0, '{view}')",
        f"INSERT INTO sqlite_master VALUES ('table', '{table}', '{table}', 2, 'CREATE TABLE {table} (k, v)')",
    )


def computing(body: bytes) -> bytes:
    """Return a file with a computing table that SQLite reads while it loads the schema."""
    made = "CREATE TABLE sqlite_stat1 (tbl, idx, stat AS (length(hex(zeroblob(240000)))))"
    return beside(
        body, f"UPDATE sqlite_master SET name = 'sqlite_stat1', tbl_name = name, sql = '{made}' WHERE name = 'beside'"
    )


def crowded(body: bytes) -> bytes:
    """Return a file with more tables than SQLite loads in a second."""
    return beside(
        body,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 60000) INSERT INTO sqlite_master"
        " SELECT 'table', 't' || i, 't' || i, 2, 'CREATE TABLE t' || i || ' (a)' FROM n",
    )


def with_one_child(body: bytes, root: int, child: int) -> bytes:
    """Return a file whose page `root` has the same child in each cell."""
    changed_body = bytearray(body)
    size = int.from_bytes(body[16:18], "big")
    at = (root - 1) * size
    assert body[at] in (2, 5)  # an interior page
    for number in range(int.from_bytes(body[at + 3 : at + 5], "big")):
        cell = at + int.from_bytes(body[at + 12 + 2 * number : at + 14 + 2 * number], "big")
        changed_body[cell : cell + 4] = child.to_bytes(4, "big")
    return bytes(changed_body)


def circular() -> bytes:
    """Return a shard whose second page, the root of its table, is its own child in each cell."""
    return with_one_child(shard_body((n.to_bytes(8, "big"), b"v" * 900) for n in range(2000)), 2, 2)


def sharing() -> bytes:
    """Return a shard with two long rows that share their last pages."""
    body = bytearray(shard_body((key, key * 200_000) for key in (b"a", b"b")))
    size = int.from_bytes(body[16:18], "big")
    assert body[size] == 10  # the second page is the table's root, and a leaf
    ends = [2 * size, size + int.from_bytes(body[size + 8 : size + 10], "big")]
    body[ends[0] - 4 : ends[0]] = body[ends[1] - 4 : ends[1]]
    return bytes(body)


def repeated() -> bytes:
    """Return a manifest that has one page of shards many times."""
    shards = tuple(replace(SHARD, db_id=number) for number in range(300))
    body = replace(MANIFEST, num_dbs=300, shards=shards).encode()
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(body)
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'shards'")
    size = int.from_bytes(body[16:18], "big")
    return with_one_child(body, root, int.from_bytes(body[(root - 1) * size + 8 : (root - 1) * size + 12], "big"))


HOSTILE = {
    "an endless view": file_of(f"CREATE VIEW kv AS {ENDLESS} SELECT x AS k, x AS v FROM c"),
    "a view of a gigabyte": file_of("CREATE VIEW kv AS SELECT x'' AS k, zeroblob(1000000000) AS v"),
    "a view of a table": file_of("CREATE TABLE real (k, v)", "CREATE VIEW kv AS SELECT k, v FROM real"),
    "a schema that lies": lying(),
    "a schema that swaps names": swapped(),
    "a virtual table": file_of("CREATE VIRTUAL TABLE kv USING rtree(k, v, w)"),
    "a computed column": file_of("CREATE TABLE kv (k BLOB PRIMARY KEY, v AS (zeroblob(1000000000)))"),
    "an index that computes": file_of("CREATE TABLE kv (k PRIMARY KEY, v)", "CREATE INDEX i ON kv (hex(zeroblob(9)))"),
    "no key": file_of("CREATE TABLE kv (k, v)"),
    "pages in a circle": circular(),
    "no table": file_of("CREATE TABLE other (k, v)"),
    "a name with a NUL": hidden(shard_body([]), "kv"),
    "statistics that compute": computing(shard_body([])),
    "too many tables": crowded(shard_body([])),
    "a plain table beside it": beside(shard_body([])),
    "texts in another encoding": file_of("PRAGMA encoding = 'UTF-16le'", *TABLES["kv"]),
}


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


def with_shard(bucket: Bucket, body: bytes) -> str:
    """Publish a snapshot whose only shard has this file."""

    def change(manifest: Manifest) -> Manifest:
        (shard,) = manifest.shards
        bucket.put(f"{shard.db_url.removeprefix('s3://memory/')}/shard.db", body)
        sha256 = hashlib.sha256(body).hexdigest()
        return replace(manifest, shards=(replace(shard, db_bytes=len(body), sha256=sha256),))

    return published(bucket, change)


def published(bucket: Bucket, change: Callable[[Manifest], Manifest], *, num_dbs: int = 1) -> str:
    folder: Any = Folder(bucket, "kv/")
    publisher = Publisher(folder, sleep=lambda _: None, now=lambda: T0)
    return publisher.publish(change(build(folder, {1: b"v"}, "r", created=T0, num_dbs=num_dbs)), publisher.base())


def with_manifest(bucket: Bucket, body: bytes) -> str:
    """Publish a snapshot, and replace its manifest."""
    ref = published(bucket, lambda manifest: manifest)
    bucket.put(ref.removeprefix("s3://memory/"), body)
    return ref


def read(bucket: Bucket, **how: Any) -> bytes | None:
    with SnapshotReader(PREFIX, open_store=bucket.opened, **how) as reader:
        return reader.get(1)


@pytest.mark.parametrize("what", [name for name in HOSTILE if name != "pages in a circle"])
def test_a_shard_is_read_only_if_its_table_is_a_plain_one(bucket: Bucket, what: str) -> None:
    """Anything else in the schema may be a program. Verification reports it, and goes on."""
    ref = with_shard(bucket, HOSTILE[what])
    told = r"(its schema |it has no plain table kv)"
    with pytest.raises(
        ShardDamagedError, match=rf"^s3://memory/kv/shards/.*is no shard that this code can read: {told}"
    ):
        read(bucket)
    (fault,) = verify(Source(PREFIX, bucket.opened), ref).faults
    assert "SQLite cannot read it: it" in fault.what


def test_pages_in_a_circle_end(bucket: Bucket) -> None:
    """A read seeks one key, and SQLite descends at most twenty pages. Verification checks the pages first."""
    ref = with_shard(bucket, HOSTILE["pages in a circle"])
    with pytest.raises(ShardDamagedError, match="malformed"):
        read(bucket)
    assert "damaged" in verify(Source(PREFIX, bucket.opened), ref).faults[0].what


def test_no_key_is_sought_where_rows_share_pages(bucket: Bucket) -> None:
    """Comparing a row with circular pages takes minutes, and is one step to SQLite."""
    with_shard(bucket, sharing())
    with pytest.raises(ShardDamagedError, match=r"it is damaged: .*2nd reference to page"):
        read(bucket)


def test_a_statement_ends_after_as_many_steps_as_the_file_may_need(tmp_path: Path) -> None:
    """This holds for any reason why SQLite goes on."""
    path = tmp_path / "shard.db"
    path.write_bytes(shard_body([(bytes([one]), b"") for one in range(100)]))
    with closing(database.of_file(path, TABLES)) as connection, pytest.raises(sqlite3.OperationalError, match="inter"):
        connection.execute("SELECT count(a.k) FROM kv a, kv b, kv c, kv d").fetchone()


def test_a_value_is_no_larger_than_its_file(bucket: Bucket) -> None:
    """A longer key is not found."""
    with_shard(bucket, shard_body([(b"k", b"v")]))
    with SnapshotReader(PREFIX, open_store=bucket.opened) as reader:
        shard = reader._opened()._shards.open(0)
        assert shard is not None
        assert shard.longest == 1 << 20
    folder: Any = Folder(bucket, "kv/")
    publish(folder, {"a": b"1"}, "text", created=T0, num_dbs=1, encoding=KeyEncoding.UTF8)
    with SnapshotReader(PREFIX, open_store=bucket.opened) as reader:
        assert (reader.get("k" * (2 << 20)), reader.get("a")) == (None, b"1")


def test_a_value_that_is_no_bytes_is_damage(bucket: Bucket) -> None:
    """Callers get only bytes; a key of another type counts as one of another shard."""
    text = file_of(*TABLES["kv"], "INSERT INTO kv VALUES (x'0000000000000001', 'text')")
    with_shard(bucket, text)
    with pytest.raises(ShardDamagedError, match="a value is not bytes"):
        read(bucket)
    number = file_of(*TABLES["kv"], f"INSERT INTO kv VALUES ({2**40}, x'')")
    other = Bucket()
    (fault,) = verify(Source(PREFIX, other.opened), with_shard(other, number)).faults
    assert "1 keys belong to another shard" in fault.what


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (
            file_of(
                "CREATE TABLE shards (db_id INTEGER PRIMARY KEY)",
                f"CREATE VIEW build_meta AS {ENDLESS} SELECT * FROM c",
            ),
            "its schema has 'table shards', which is no table as writers make them",
        ),
        (hidden(MANIFEST.encode(), "build_meta"), "its schema has '(table|view) build_meta.*which is no table"),
        (computing(MANIFEST.encode()), "its schema has 'table sqlite_stat1', which is no table"),
        (crowded(MANIFEST.encode()), "its schema is not on the first page"),
        (changed("UPDATE build_meta SET num_dbs = 0"), "num_dbs is 0, and no integer from 1 on"),
        (changed("UPDATE build_meta SET num_dbs = 'many'"), "num_dbs is 'many'"),
        (changed("UPDATE build_meta SET run_id = x'00'"), "run_id is b'.x00', and no text"),
        (changed("UPDATE build_meta SET custom = '[]'"), "custom is .*no JSON object"),
        (changed("UPDATE shards SET row_count = 1.5"), "row_count is 1.5"),
        (changed("UPDATE shards SET min_key = '[[]]'"), "min_key is .*no key"),
        (changed(f"UPDATE shards SET max_key = '{'[' * 9000}'"), "max_key is .*no key"),
        (b"SQLite format 3\0" + b"\xff" * 5000, "not a database"),
        (repeated(), "it is damaged"),
    ],
)
def test_a_manifest_that_lies_is_one_clear_error(bucket: Bucket, body: bytes, what: str) -> None:
    """Reader, verification, rollback and clean-up name the object, the field, and what to do."""
    ref = with_manifest(bucket, body)
    source = Source(PREFIX, bucket.opened)
    for use in (
        lambda: read(bucket),
        lambda: verify(source, ref),
        lambda: rollback(source, Target(manifest_ref=ref), publisher=Publisher(Folder(bucket, "kv/"))),
        lambda: cleanup(source),
    ):
        with pytest.raises(ManifestParseError, match=rf"^{ref} is no manifest .*{what}.*[Gg]o back to"):
            use()


@pytest.mark.parametrize("size", [2**50, 2**62])
def test_a_size_that_no_disk_has_is_refused_before_anything_is_fetched(
    bucket: Bucket, tmp_path: Path, size: int
) -> None:
    """The error names the object and the field, and the cache keeps its files."""
    published(bucket, lambda found: replace(found, shards=(replace(found.shards[0], db_bytes=size),)))
    (tmp_path / "other.db").write_bytes(b"x")
    with pytest.raises(ReaderStateError, match=r"shard\.db has .* bytes by its manifest \(db_bytes\).*Take another"):
        read(bucket, cache=tmp_path, cache_limit_bytes=100_000)
    assert (tmp_path / "other.db").exists()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "the manifest names"),
        ({"sha256": None}, "the manifest names"),
        ({"sha256": None, "db_bytes": 0}, "the cache"),
    ],
)
def test_an_object_is_fetched_no_further_than_its_manifest_says(
    bucket: Bucket, tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    """It may be as large as S3 allows. Without a size in the manifest, the cache's limit ends it."""
    published(bucket, lambda found: replace(found, shards=(replace(found.shards[0], **changes),)))
    (key,) = [listed.key for listed in bucket.list("kv/shards/")]
    bucket.put(key, b"x" * (8 << 20))
    with pytest.raises(ShardDamagedError, match=f"has more bytes than the .* that {told}"):
        read(bucket, cache=tmp_path, cache_limit_bytes=4 << 20)


def test_an_object_that_does_not_fit_on_the_disk_is_told(bucket: Bucket) -> None:
    """Without a SHA-256 its size is unknown before."""
    ref = published(bucket, lambda found: replace(found, shards=(replace(found.shards[0], sha256=None),)))
    source = Source(PREFIX, bucket.opened)
    told = r"shard\.db does not fit on this machine's disk"
    with Path("/dev/full").open("r+b", buffering=0) as file, pytest.raises(ReaderStateError, match=told):
        fetch(source, source.manifest(ref).shards[0], file)


@pytest.mark.parametrize(("key", "most"), [("_CURRENT", CURRENT_MAX_BYTES), ("manifest", MANIFEST_MAX_BYTES)])
def test_an_object_without_end_is_not_read_into_memory(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, key: str, most: int
) -> None:
    """`_CURRENT` and manifests have bounds that honest ones never reach."""
    published(bucket, lambda found: found)
    monkeypatch.setattr(bucket, "get", limited(bucket, key, most))
    with pytest.raises(ManifestParseError, match=rf"{key} has .* bytes, more than the {most:,}.*[Gg]o back"):
        read(bucket)


def limited(bucket: Bucket, name: str, most: int) -> Callable[..., Any]:
    """Return a `get` that reports an object as larger than `most`."""
    get = bucket.get

    def asked(key: str, *, max_bytes: int | None = None) -> Any:
        if key.endswith(name) and max_bytes is not None:
            assert max_bytes == most
            raise TooLarge(bucket.uri(key), most + 1, max_bytes)
        return get(key, max_bytes=max_bytes)

    return asked


@pytest.mark.parametrize(
    "url", ["s3://other-bucket/kv/a", "s3://memory/other/a", "s3://memory/kv2/a", "s3://memory/kv"]
)
def test_nothing_leads_beyond_the_prefix(bucket: Bucket, url: str) -> None:
    """Neither `_CURRENT` nor a shard's `db_url` does: a reader may have more rights than the writers."""
    opened: list[str] = []

    def open_store(where: Any) -> Any:
        opened.append(str(where))
        return bucket.opened(where)

    ref = published(bucket, lambda found: replace(found, shards=(replace(found.shards[0], db_url=url),)))
    source = Source(PREFIX, open_store)
    for use in (
        lambda: SnapshotReader(PREFIX, open_store=open_store).get(1),
        lambda: verify(source, ref),
        lambda: source.damage(source.manifest(ref).shards),
    ):
        with pytest.raises(ManifestParseError, match=rf"^{url}\S* does not lie below s3://memory/kv/.*Go back"):
            use()
    body = json.loads(bucket.get(f"kv/{CURRENT}").body)
    bucket.put(f"kv/{CURRENT}", json.dumps({**body, "manifest_ref": url}).encode())
    with pytest.raises(ManifestParseError, match="does not lie below s3://memory/kv/"):
        SnapshotReader(PREFIX, open_store=open_store)
    assert set(opened) == {PREFIX}


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 1e999},
        {"version": "many"},
        {"history": [{"manifest_ref": "s3://memory/kv/m", "at": "yesterday"}]},
        {"history": [{"manifest_ref": "s3://memory/kv/m", "at": 5}]},
        {"history": 7},
        {"published": {"sw-1": {"version": "x", "manifest_ref": "s3://memory/m", "rows": 1, "bytes": 1, "at_ms": 1}}},
        {"published": {"sw-1": {"version": 1, "manifest_ref": 5, "rows": 1, "bytes": 1, "at_ms": 1}}},
        {"fenced": {"sw-1": None}},
        {"manifest_ref": 5},
    ],
)
def test_a_pointer_that_lies_is_one_clear_error(bucket: Bucket, changes: dict[str, object]) -> None:
    """This holds for any value in the place of a number, a moment or a name."""
    published(bucket, lambda found: found)
    body = json.loads(bucket.get(f"kv/{CURRENT}").body)
    bucket.put(f"kv/{CURRENT}", json.dumps({**body, **changes}).encode())
    source = Source(PREFIX, bucket.opened)
    for use in (lambda: read(bucket), lambda: history(source), lambda: cleanup(source)):
        with pytest.raises(ManifestParseError, match=r"^s3://memory/kv/_CURRENT does not say"):
            use()


def test_an_object_of_a_day_that_there_never_was_is_no_manifest(bucket: Bucket) -> None:
    """The history ignores it."""
    ref = published(bucket, lambda found: found)
    bucket.put("kv/manifests/2026-99-99T00:00:00.000000Z_run_id=x/manifest", b"")
    assert [entry.manifest_ref for entry in history(Source(PREFIX, bucket.opened))] == [ref]


@pytest.mark.parametrize(
    "rule",
    [
        "[0, 1]" + "".join(f".map(x{n}, [x{n}, x{n}])" for n in range(22)) + ".size()",
        "['a']" + "".join(f".map(x{n}, x{n} + x{n})" for n in range(22)) + "[0].size()",
        "[" + ", ".join("1" * 999) + "].all(a, [" + ", ".join("1" * 999) + "].all(b, a == b)) ? 0 : 1",
        "0" + " " * 20_000,
        "[1, 2].exists(x, 'a'.matches('a')) ? 1 : 0",
        r"""'a'.matches(string(key) + '(\pL{10}){10}') ? 1 : 0""",
        "'a'.matches('(a{10}){10}') ? 1 : 0",
        r"'a'.matches('a\u007b10}') ? 1 : 0",
        r"'a'.matches(r'\pL\pL\pL') ? 1 : 0",
        "'a'.matches('" + "." * 199 + "') ? 1 : 0",
        "'a'.matches('.') || 'a'.matches // '.')\n('a{9}') ? 1 : 0",
        "matches('a', 'a{9}') ? 1 : 0",
        '"a".matches("""a{9}""") ? 1 : 0',
    ],
)
def test_a_rule_that_grows_is_refused_before_it_is_compiled(bucket: Bucket, rule: str) -> None:
    """Manifests and builds are checked alike: otherwise a build's snapshot could be unreadable."""
    document = {"strategy": "cel", "hash_algorithm": "xxh3_64", "cel_expr": rule, "cel_columns": {"key": "int"}}
    published(bucket, lambda found: replace(found, sharding=document))
    with pytest.raises(ManifestParseError, match="may take too long"):
        read(bucket)
    with pytest.raises(SnapshotError, match="may take too long"):
        CelExpression.of(rule, {"key": "int"})


@pytest.mark.parametrize(
    "rule",
    [
        "['a', 'b', 'c'].exists(x, key.startsWith(x)) || ['d', 'e'].exists(x, key.endsWith(x)) ? 0 : 1",
        " + ".join(["key"] * 30) + " == 'a' ? 0 : 1",
        "key in [" + ", ".join(f"'{n}'" for n in range(1500)) + "] ? 0 : 1",
        r"""key.matches('^a.*') || key.matches(r"\d+[.]\w") || key == 'matches' ? 0 : 1""",
    ],
)
def test_an_honest_rule_is_read(rule: str) -> None:
    """Long lists, sums of texts and a few macros are accepted."""
    assert CelExpression.of(rule, {"key": "string"}).token({"key": "f"}) == 1


def test_routing_values_without_end_take_no_time(bucket: Bucket) -> None:
    """The duplicate is found in one pass."""
    values = [str(number) for number in range(9_999)]
    document = {
        "strategy": "cel",
        "hash_algorithm": "xxh3_64",
        "cel_expr": "string(key)",
        "cel_columns": {"key": "int"},
        "routing_values": [*values, values[-1]],
    }
    published(bucket, lambda found: replace(found, sharding=document))
    with pytest.raises(ManifestParseError, match="the routing value '9998' is there twice"):
        read(bucket)


def test_a_record_of_blanks_is_read_in_one_pass(bucket: Bucket) -> None:
    """A clean-up reads run records; a record that is too large is unreadable, and its run counts as living."""
    published(bucket, lambda found: found)
    name = "kv/runs/2026-11-20T00:00:00.000000Z_run_id={}_1/run.yaml"
    bucket.put(name.format("blank"), b"status: a" + b" " * 500_000 + b"x\x7f")
    bucket.put(name.format("large"), b"#" * (1 << 17))
    survey = cleanup(Source(PREFIX, bucket.opened)).survey
    assert survey.living == {"blank", "large"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"cel_columns": {f"c{n}": "int" for n in range(101)}}, "101 columns"),
        ({"cel_columns": {"c" * 257: "int"}}, "up to 257 letters"),
        ({"cel_columns": {"key": []}}, "has the type"),
        ({"cel_expr": "'\ud800'"}, "is none: compile"),
        ({"cel_columns": {"\ud800": "int"}}, "no name of a variable"),
        ({"strategy": []}, "its sharding is"),
        ({"routing_values": [[]]}, "neither an integer nor a text"),
    ],
)
def test_a_rule_that_lies_is_one_clear_error(bucket: Bucket, changes: dict[str, object], told: str) -> None:
    """Reader and verification raise it. Compiling too many columns would take the C++ library many seconds."""
    document = {
        "strategy": "cel",
        "hash_algorithm": "xxh3_64",
        "cel_expr": "key",
        "cel_columns": {"key": "int"},
        **changes,
    }
    ref = published(bucket, lambda found: replace(found, sharding=document))
    for use in (lambda: read(bucket), lambda: verify(Source(PREFIX, bucket.opened), ref)):
        with pytest.raises(ManifestParseError, match=told):
            use()
