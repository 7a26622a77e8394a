from __future__ import annotations

from typing import TYPE_CHECKING

from handler.open_writes import OpenWrites
from safewriter import journal

if TYPE_CHECKING:
    from pathlib import Path


def test_a_table_is_named_while_its_block_is_open(tmp_path: Path) -> None:
    """Two tables at once are two names, two blocks on one table are one."""
    path = tmp_path / "journal.jsonl"
    writes = OpenWrites(path)
    assert writes.tables() == ()
    for nonce, table in (("1", "s3://a/x"), ("2", "s3://b/y"), ("3", "s3://a/x")):
        journal.append(path, "write_opened", nonce=nonce, table=table)
    assert writes.tables() == ("s3://a/x", "s3://b/y")
    journal.append(path, "write_closed", nonce="1")
    journal.append(path, "write_closed", nonce="2")
    assert writes.tables() == ("s3://a/x",)
    journal.append(path, "write_closed", nonce="3")
    assert writes.tables() == ()
