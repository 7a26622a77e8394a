"""The manifest of a snapshot: a small SQLite file, which never changes.

Source of the format: shardyfusion's manifest of version 4. A `sha256` of each shard is ours; readers that do not know
the column ignore it.
"""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from safewriter.parsing import parsed
from safewriter.snapshots.errors import ManifestParseError
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.format.places import canonical_url

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Manifest", "Shard"]

_FORMAT: Final = 4
_MAGIC: Final = b"SQLite format 3\0"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_TABLES: Final = """
CREATE TABLE build_meta (run_id TEXT NOT NULL, created_at TEXT NOT NULL, num_dbs INTEGER NOT NULL,
 s3_prefix TEXT NOT NULL, key_col TEXT NOT NULL, sharding TEXT NOT NULL, db_path_template TEXT NOT NULL,
 shard_prefix TEXT NOT NULL, format_version INTEGER NOT NULL, key_encoding TEXT NOT NULL,
 custom TEXT NOT NULL DEFAULT '{}');
CREATE TABLE shards (db_id INTEGER PRIMARY KEY, db_url TEXT NOT NULL, attempt INTEGER NOT NULL CHECK (attempt >= 0),
 row_count INTEGER NOT NULL, db_bytes INTEGER NOT NULL, min_key TEXT, max_key TEXT, checkpoint_id TEXT,
 writer_info TEXT NOT NULL, sha256 TEXT);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A shard that has rows. `checkpoint_id` changes with its content; keys are JSON values, None for raw bytes."""

    db_id: int
    db_url: str
    attempt: int
    row_count: int
    db_bytes: int
    min_key: int | str | None
    max_key: int | str | None
    checkpoint_id: str
    writer_info: Mapping[str, Any]
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One snapshot. `sharding` is the rule that gives each key its shard; `routing_of` reads it."""

    run_id: str
    created_at: str
    num_dbs: int
    s3_prefix: str
    key_col: str
    db_path_template: str
    shard_prefix: str
    key_encoding: KeyEncoding
    sharding: Mapping[str, Any]
    shards: tuple[Shard, ...]
    custom: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The rows of all shards."""
        return sum(shard.row_count for shard in self.shards)

    @property
    def size(self) -> int:
        """The bytes of all shards."""
        return sum(shard.db_bytes for shard in self.shards)

    def encode(self) -> bytes:
        """Return the SQLite file."""
        connection = sqlite3.connect(":memory:")
        try:
            connection.executescript(_TABLES)
            connection.execute(
                "INSERT INTO build_meta VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    self.run_id,
                    self.created_at,
                    self.num_dbs,
                    self.s3_prefix,
                    self.key_col,
                    json.dumps(dict(self.sharding), sort_keys=True),
                    self.db_path_template,
                    self.shard_prefix,
                    _FORMAT,
                    self.key_encoding.value,
                    json.dumps(dict(self.custom), sort_keys=True),
                ),
            )
            connection.executemany("INSERT INTO shards VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", map(_row, self.shards))
            connection.commit()
            return connection.serialize()
        finally:
            connection.close()

    @classmethod
    def decode(cls, body: bytes, where: str) -> Manifest:
        """Read a manifest. Raises `ManifestParseError`, which says what is wrong with it."""
        if not body.startswith(_MAGIC):
            raise ManifestParseError(f"{where} is no SQLite file, so it is no manifest")
        connection = sqlite3.connect(":memory:")
        connection.row_factory = sqlite3.Row
        try:
            connection.deserialize(body)
            metas = connection.execute("SELECT * FROM build_meta").fetchall()
            rows = connection.execute("SELECT * FROM shards ORDER BY db_id").fetchall()
            return _manifest(metas, rows)
        except (sqlite3.Error, IndexError, TypeError, ValueError) as error:
            raise ManifestParseError(f"{where} is no manifest that this code can read: {error}") from error
        finally:
            connection.close()


def _row(shard: Shard) -> tuple[object, ...]:
    return (
        shard.db_id,
        shard.db_url,
        shard.attempt,
        shard.row_count,
        shard.db_bytes,
        None if shard.min_key is None else json.dumps(shard.min_key),
        None if shard.max_key is None else json.dumps(shard.max_key),
        shard.checkpoint_id,
        json.dumps(dict(shard.writer_info), sort_keys=True),
        shard.sha256,
    )


def _manifest(metas: list[sqlite3.Row], rows: list[sqlite3.Row]) -> Manifest:
    (meta,) = metas
    if meta["format_version"] != _FORMAT:
        raise ValueError(f"it has format {meta['format_version']!r}; this code knows {_FORMAT}")
    sharding = parsed(meta["sharding"])
    if not isinstance(sharding, dict):
        raise TypeError(f"its sharding is {sharding!r}, and no JSON object")
    shards = tuple(map(_shard, rows))
    if any(not 0 <= shard.db_id < meta["num_dbs"] for shard in shards):
        raise ValueError(f"a shard has a number beyond the {meta['num_dbs']} that there are")
    return Manifest(
        run_id=meta["run_id"],
        created_at=meta["created_at"],
        num_dbs=meta["num_dbs"],
        s3_prefix=meta["s3_prefix"],
        key_col=meta["key_col"],
        db_path_template=meta["db_path_template"],
        shard_prefix=meta["shard_prefix"],
        key_encoding=KeyEncoding(meta["key_encoding"]),
        sharding=sharding,
        shards=shards,
        custom=parsed(meta["custom"]),
    )


def _shard(row: sqlite3.Row) -> Shard:
    """Read a shard. SQLite holds anything in a column, and readers take files, sizes and names from here."""
    sha256 = row["sha256"] if "sha256" in row.keys() else None  # noqa: SIM118 - a row's `in` asks its values
    if sha256 is not None and not (isinstance(sha256, str) and _SHA256.fullmatch(sha256)):
        raise ValueError(f"the SHA-256 of a shard is {sha256!r}, and not 64 hexadecimal digits")
    if not isinstance(row["db_bytes"], int) or row["db_bytes"] < 0:
        raise ValueError(f"the size of a shard is {row['db_bytes']!r}")
    return Shard(
        db_id=row["db_id"],
        db_url=canonical_url(row["db_url"]),
        attempt=row["attempt"],
        row_count=row["row_count"],
        db_bytes=row["db_bytes"],
        min_key=None if row["min_key"] is None else parsed(row["min_key"]),
        max_key=None if row["max_key"] is None else parsed(row["max_key"]),
        checkpoint_id=row["checkpoint_id"],
        writer_info=parsed(row["writer_info"]),
        sha256=sha256,
    )
