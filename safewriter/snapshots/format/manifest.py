"""The manifest of a snapshot: a small SQLite file, which never changes.

Source of the format: shardyfusion's manifest of version 4. We add a `sha256` of each shard; other readers ignore the
column.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from safewriter.parsing import parsed
from safewriter.snapshots.errors import ManifestParseError
from safewriter.snapshots.format import database
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.format.places import canonical_url
from safewriter.snapshots.sharding import SHARDS_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MANIFEST_MAX_BYTES", "Manifest", "Shard"]

MANIFEST_MAX_BYTES: Final = 8 << 20
"""A shard takes about 400 bytes. Reading a manifest of this size takes 60 MB of memory at most."""
_SHARDING_VALUES_MAX: Final = SHARDS_MAX + 10_000
"""Room for a routing value for each shard, and the commas of the expression."""
_CUSTOM_VALUES_MAX: Final = 10_000
_WRITER_VALUES_MAX: Final = 32
_DEPTH_MAX: Final = 100
"""Code that prints a manifest can recurse a few hundred levels."""

_FORMAT: Final = 4
_MAGIC: Final = b"SQLite format 3\0"
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_TEXTS: Final = ("run_id", "created_at", "s3_prefix", "key_col", "db_path_template", "shard_prefix")
_TEXT_MAX: Final = 200
_SELECT_SHARDS: Final = "SELECT * FROM shards ORDER BY db_id LIMIT ?"
_META: Final = (
    "CREATE TABLE build_meta (run_id TEXT NOT NULL, created_at TEXT NOT NULL, num_dbs INTEGER NOT NULL,"
    " s3_prefix TEXT NOT NULL, key_col TEXT NOT NULL, sharding TEXT NOT NULL, db_path_template TEXT NOT NULL,"
    " shard_prefix TEXT NOT NULL, format_version INTEGER NOT NULL, key_encoding TEXT NOT NULL,"
    " custom TEXT NOT NULL DEFAULT '{}')"
)
_SHARDS: Final = (
    "CREATE TABLE shards (db_id INTEGER PRIMARY KEY, db_url TEXT NOT NULL,"
    " attempt INTEGER NOT NULL CHECK (attempt >= 0), row_count INTEGER NOT NULL, db_bytes INTEGER NOT NULL,"
    " min_key TEXT, max_key TEXT, checkpoint_id TEXT, writer_info TEXT NOT NULL, sha256 TEXT)"
)
_TABLES: Final = {
    "build_meta": (
        _META,
        # The statements of shardyfusion, from all its commits with this format.
        (
            "CREATE TABLE build_meta ( run_id TEXT NOT NULL, created_at TEXT NOT NULL, num_dbs INTEGER NOT NULL,"
            " s3_prefix TEXT NOT NULL, key_col TEXT NOT NULL, sharding TEXT NOT NULL, db_path_template TEXT NOT NULL,"
            " shard_prefix TEXT NOT NULL, format_version INTEGER NOT NULL, key_encoding TEXT NOT NULL,"
            " custom TEXT NOT NULL DEFAULT '{}' )"
        ),
    ),
    "shards": (
        _SHARDS,
        *(
            "CREATE TABLE shards ( db_id INTEGER NOT NULL PRIMARY KEY, db_url TEXT, attempt INTEGER NOT NULL,"
            f" row_count INTEGER NOT NULL, db_bytes INTEGER NOT NULL,{sidecar} min_key TEXT, max_key TEXT,"
            " checkpoint_id TEXT, writer_info TEXT NOT NULL DEFAULT '{}' )"
            for sidecar in ("", " sidecar_decompressed_bytes INTEGER,")
        ),
    ),
}
"""The tables of a manifest, with the statements by which writers create them."""


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
    """One snapshot. `sharding` is the rule that maps keys to shards; `routing_of` reads it."""

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
    sha256: str | None = field(default=None, compare=False)
    """That of the file that it was read from."""

    @property
    def folders(self) -> frozenset[str]:
        """The folders of all shards."""
        return frozenset(shard.db_url for shard in self.shards)

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
            connection.execute(_META)
            connection.execute(_SHARDS)
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
        try:
            with closing(database.of_bytes(body, _TABLES)) as connection:
                connection.row_factory = sqlite3.Row
                metas = connection.execute("SELECT * FROM build_meta LIMIT 2").fetchall()
                rows = connection.execute(_SELECT_SHARDS, (SHARDS_MAX + 1,)).fetchall()
            return replace(_manifest(metas, rows), sha256=hashlib.sha256(body).hexdigest())
        except (sqlite3.Error, AttributeError, IndexError, TypeError, ValueError) as error:
            raise ManifestParseError(
                f"{where} is no manifest that this code can read: {error}. Go back to another snapshot, or build again"
            ) from error


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
    num_dbs = _number(meta, "num_dbs", at_least=1)
    if num_dbs > SHARDS_MAX:
        raise ValueError(f"it has {num_dbs:,} shards; this code reads {SHARDS_MAX:,} at most")
    shards = tuple(map(_shard, rows))
    if any(shard.db_id >= num_dbs for shard in shards):
        raise ValueError(f"a shard has a number beyond the {num_dbs} that there are")
    if any(shard.db_id == next_.db_id for shard, next_ in pairwise(shards)):
        raise ValueError("two shards have one db_id")
    return Manifest(
        num_dbs=num_dbs,
        **{name: _text(meta, name) for name in _TEXTS},
        key_encoding=KeyEncoding(meta["key_encoding"]),
        sharding=_object(meta, "sharding", _SHARDING_VALUES_MAX),
        shards=shards,
        custom=_object(meta, "custom", _CUSTOM_VALUES_MAX),
    )


def _shard(row: sqlite3.Row) -> Shard:
    """Read a shard. Check each type: SQLite stores anything in a column, and readers trust these values."""
    sha256 = row["sha256"] if "sha256" in row.keys() else None  # noqa: SIM118 - a row's `in` asks its values
    if sha256 is not None and not (isinstance(sha256, str) and _SHA256.fullmatch(sha256)):
        raise ValueError(f"the SHA-256 of a shard is {sha256!r}, and not 64 hexadecimal digits")
    return Shard(
        db_id=_number(row, "db_id"),
        db_url=canonical_url(_text(row, "db_url")),
        attempt=_number(row, "attempt"),
        row_count=_number(row, "row_count"),
        db_bytes=_number(row, "db_bytes"),
        min_key=_key(row, "min_key"),
        max_key=_key(row, "max_key"),
        checkpoint_id="" if row["checkpoint_id"] is None else _text(row, "checkpoint_id"),
        writer_info=_object(row, "writer_info", _WRITER_VALUES_MAX),
        sha256=sha256,
    )


def _number(row: sqlite3.Row, name: str, *, at_least: int = 0) -> int:
    value = row[name]
    if not isinstance(value, int) or value < at_least:
        raise ValueError(f"{name} is {_short(value)}, and no integer from {at_least} on")
    return value


def _text(row: sqlite3.Row, name: str) -> str:
    value = row[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is {_short(value)}, and no text")
    return value


def _object(row: sqlite3.Row, name: str, values_max: int) -> dict[str, Any]:
    try:
        value = parsed(_text(row, name), values_max=values_max)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if not isinstance(value, dict):
        raise TypeError(f"{name} is {_short(value)}, and no JSON object")
    _check_depth(name, value)
    return value


def _check_depth(name: str, value: dict[str, Any]) -> None:
    level: list[Any] = [value]
    for _ in range(_DEPTH_MAX):
        inner = [node.values() if isinstance(node, dict) else node for node in level if isinstance(node, dict | list)]
        level = [child for children in inner for child in children]
    if level:
        raise ValueError(f"{name} is nested more than {_DEPTH_MAX} deep")


def _key(row: sqlite3.Row, name: str) -> int | str | None:
    if row[name] is None:
        return None
    text = _text(row, name)
    value: Any = {} if text.lstrip().startswith(("[", "{")) else parsed(text)
    if not isinstance(value, int | str | None):
        raise TypeError(f"{name} is {_short(text)}, and no key")
    return value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"
