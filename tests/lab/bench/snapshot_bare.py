"""One process of the bare loop: `python -m tests.lab.bench.snapshot_bare FIRST LAST FOLDER`.

It hashes the keys of rows in Python lists, sorts them, and inserts them into SQLite: no Spark, no checks, no upload. Do
not change it: the benchmark's figures are ratios to its speed.
"""

from __future__ import annotations

import sqlite3
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import xxhash

from tests.lab.bench import snapshot_rows
from tests.lab.processes import answer, asked

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["write"]

_PRAGMAS: Final = ("page_size = 4096", "journal_mode = OFF", "synchronous = OFF", "cache_size = -2000")


def write(keys: Sequence[int], values: Sequence[bytes], shards: int, folder: Path) -> None:
    """Write a file for each shard."""
    h, pk = xxhash.xxh3_64_intdigest, struct.Struct(">Q").pack
    b: list[list[tuple[bytes, bytes]]] = [[] for _ in range(shards)]
    for k, v in zip(keys, values, strict=False):
        b[h(k.to_bytes(8, "little", signed=True)) % shards].append((pk(k), v))
    for x in b:
        x.sort()
    for i, x in enumerate(b):
        c = sqlite3.connect(folder / f"{i}.db", isolation_level=None)
        for pragma in _PRAGMAS:
            c.execute(f"PRAGMA {pragma}")
        c.execute("create table kv(k blob primary key, v blob not null) without rowid")
        c.execute("begin")
        c.executemany("insert or replace into kv values(?,?)", x)
        c.execute("commit")
        c.close()


def main(first: int, last: int, root: str) -> None:
    """Make the lists, then write them into the requested number of shards for each line on stdin."""
    numbers = range(first, last)
    keys, values = snapshot_rows.keys(numbers).tolist(), snapshot_rows.values(numbers)
    answer()
    for question in asked():
        with tempfile.TemporaryDirectory(dir=root) as folder:
            began, spent = time.monotonic(), time.process_time()
            write(keys, values, question["shards"], Path(folder))
            answer(cpu_s=time.process_time() - spent, began_s=began, ended_s=time.monotonic())


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
