"""The log store finds in a table's last versions, without repeated requests, whether a write has already landed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from soal.testing.s3.rules import Refuse

if TYPE_CHECKING:
    from tests.logstore.conftest import Bucket

KEYS: Final = [f"sw-{number:032x}" for number in range(8)]


def commit(lake: Bucket, version: int, key: str | None, *, signed: bool = False) -> None:
    """Put a version as the gate writes it, or `signed`, as an undo: it names the key only in its metadata."""
    info = {"commitInfo": {"operation": "WRITE", "userMetadata": json.dumps({"key": key}) if signed else ""}}
    named = [] if key is None or signed else [{"txn": {"appId": key, "version": 1}}]
    actions = [info, *named, {"add": {"path": f"{KEYS[7]}-part", "size": 1}}]
    lake.put(
        f"t/_delta_log/{version:020}.json", "\n".join(json.dumps(action, separators=(",", ":")) for action in actions)
    )


def named(lake: Bucket, key: str, last: int, table: str = "id") -> int | str:
    answer = lake.ask("named", "t/_delta_log", write=key, last=last, id=table)
    return answer["error"][0] if "error" in answer else int(answer["version"])


def asked(lake: Bucket) -> int:
    return len([one for one in lake.requests() if one.startswith(("Get", "List"))])


def test_a_write_is_found_where_the_table_names_it(lake: Bucket) -> None:
    """By its transaction or signature, not by a file name; each version is read once."""
    commit(lake, 0, KEYS[0])
    commit(lake, 1, None)
    commit(lake, 2, KEYS[2], signed=True)
    commit(lake, 3, KEYS[0])
    assert [named(lake, KEYS[number], 3) for number in (0, 1, 2, 7)] == [0, -1, 2, -1]
    assert asked(lake) == 1 + 4
    commit(lake, 4, KEYS[4])
    assert (named(lake, KEYS[4], 3), named(lake, KEYS[4], 4), asked(lake)) == (-1, 4, 5 + 2)


def test_a_version_that_a_block_has_written_is_known(lake: Bucket) -> None:
    """A session that writes block after block sends no request."""
    commit(lake, 0, None)
    assert named(lake, KEYS[1], 0) == -1
    before = asked(lake)
    lake.ask("landed", f"t/_delta_log/{1:020}.json", version=1, write=KEYS[1])
    assert (named(lake, KEYS[1], 1), asked(lake) - before) == (1, 0)


def test_a_table_that_a_block_has_made_is_known(lake: Bucket) -> None:
    """From its first version on."""
    assert named(lake, KEYS[1], -1) == -1
    lake.ask("landed", f"t/_delta_log/{0:020}.json", version=0, write=KEYS[1])
    assert (named(lake, KEYS[1], 0), named(lake, KEYS[2], 0), asked(lake)) == (0, -1, 0)


def test_a_table_that_was_made_anew_is_read_anew(lake: Bucket) -> None:
    """The earlier table's versions do not count."""
    commit(lake, 0, KEYS[0])
    assert named(lake, KEYS[0], 0) == 0
    commit(lake, 0, KEYS[1])
    assert (named(lake, KEYS[0], 0, "other"), named(lake, KEYS[1], 0, "other")) == (-1, 0)


def test_what_the_retention_has_taken_is_not_asked_for(lake: Bucket) -> None:
    """Versions more than a hundred back are not read either."""
    commit(lake, 0, KEYS[0])  # too old
    commit(lake, 120, KEYS[1])
    commit(lake, 121, KEYS[2])
    assert [named(lake, KEYS[number], 121) for number in range(3)] == [-1, 120, 121]
    assert asked(lake) == 1 + 2


def test_a_version_that_is_gone_between_others_is_an_error(lake: Bucket) -> None:
    """Retention deletes only the oldest, so the missing version may have named the write."""
    for version in (0, 1, 3):
        commit(lake, version, None)
    assert "is gone, and older ones are there" in str(named(lake, KEYS[0], 3))
    commit(lake, 2, KEYS[0])
    assert named(lake, KEYS[0], 3) == 2


def test_a_version_that_cannot_be_read_is_an_error(lake: Bucket) -> None:
    """It does not count as one that names no write; the next call reads it again."""
    commit(lake, 0, KEYS[0])
    lake.breaks("GetObject", Refuse(403))
    assert "cannot tell which writes the table holds" in str(named(lake, KEYS[0], 0))
    assert named(lake, KEYS[0], 0) == 0
    assert " is gone: the table was dropped" in str(named(lake, KEYS[0], 1))
