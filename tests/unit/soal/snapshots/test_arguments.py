"""`soal snapshot` parses keys and context columns as the snapshot stores them, and shows values in three forms."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from safewriter.snapshots.format.encoding import KeyEncoding
from soal.console.problem import Problem
from soal.snapshots.arguments import context_of, key_of, text_of
from tests.support.snapshots import Bucket, build

MANIFEST = replace(
    build(Bucket(), {1: b"v"}, "r", created=datetime(2026, 11, 1, tzinfo=UTC)),
    sharding={
        "strategy": "cel",
        "cel_columns": {"n": "int", "u": "uint", "d": "double", "b": "bool", "s": "string", "y": "bytes"},
    },
)


@pytest.mark.parametrize(
    ("text", "encoding", "is_hex", "key"),
    [
        ("42", KeyEncoding.U64BE, False, 42),
        ("42", KeyEncoding.U32BE, False, 42),
        ("42", KeyEncoding.UTF8, False, "42"),
        ("é", KeyEncoding.RAW, False, "é"),
        ("00ff", KeyEncoding.RAW, True, b"\x00\xff"),
    ],
)
def test_a_key_is_read_as_the_snapshot_stores_it(
    text: str, encoding: KeyEncoding, *, is_hex: bool, key: object
) -> None:
    """A key is parsed as an integer, a text or bytes, by the snapshot's encoding."""
    assert key_of(text, encoding, is_hex=is_hex) == key


@pytest.mark.parametrize(
    ("text", "encoding", "is_hex"),
    [("x", KeyEncoding.U64BE, False), ("00", KeyEncoding.U64BE, True), ("0g", KeyEncoding.RAW, True)],
)
def test_what_is_no_key_is_told(text: str, encoding: KeyEncoding, *, is_hex: bool) -> None:
    """A malformed key is a problem."""
    with pytest.raises(Problem):
        key_of(text, encoding, is_hex=is_hex)


def test_other_columns_have_the_types_of_the_rule() -> None:
    """Other columns get the rule's types; without pairs there is no context."""
    pairs = ["n=-1", "u=2", "d=1.5", "b=True", "s=a=b", "y=é"]
    assert context_of(pairs, MANIFEST) == {
        "n": -1,
        "u": 2,
        "d": 1.5,
        "b": True,
        "s": "a=b",
        "y": "é".encode(),
    }
    assert context_of([], MANIFEST) is None


@pytest.mark.parametrize("pair", ["n", "other=1", "n=x", "b=maybe"])
def test_a_wrong_context_is_told(pair: str) -> None:
    """The problem names the columns, or the type."""
    with pytest.raises(Problem, match="--context"):
        context_of([pair], MANIFEST)


def test_a_value_is_shown_in_three_forms() -> None:
    """Bytes are shown as text, hex or base64; bytes that are not text only as the last two."""
    assert [text_of(b"a\xc3\xa9", form) for form in ("text", "hex", "base64")] == ["aé", "61c3a9", "YcOp"]
    assert text_of(b"\xff", "hex") == "ff"
    with pytest.raises(Problem, match="not text"):
        text_of(b"\xff", "text")
