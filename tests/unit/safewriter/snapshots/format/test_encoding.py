"""The encodings of a snapshot's keys: integers become bytes that sort alike, and a key out of range is refused."""

from __future__ import annotations

import pytest

from safewriter.snapshots.errors import KeyRangeError
from safewriter.snapshots.format.encoding import Key, KeyEncoding, encode


@pytest.mark.parametrize(
    ("key", "encoding", "stored"),
    [
        (0, KeyEncoding.U64BE, bytes(8)),
        (2**63 - 1, KeyEncoding.U64BE, b"\x7f" + b"\xff" * 7),
        (258, KeyEncoding.U32BE, b"\x00\x00\x01\x02"),
        ("é", KeyEncoding.UTF8, b"\xc3\xa9"),
        (b"\xff", KeyEncoding.RAW, b"\xff"),
        ("a", KeyEncoding.RAW, b"a"),
    ],
)
def test_a_key_is_stored_as_its_encoding_says(key: Key, encoding: KeyEncoding, stored: bytes) -> None:
    """Integers are big-endian, so bytes sort like the numbers."""
    assert encode(key, encoding) == stored


@pytest.mark.parametrize(
    ("key", "encoding"),
    [
        (-1, KeyEncoding.U64BE),
        (2**63, KeyEncoding.U64BE),
        (2**32, KeyEncoding.U32BE),
        (True, KeyEncoding.U64BE),
        ("1", KeyEncoding.U64BE),
        (1, KeyEncoding.UTF8),
        (None, KeyEncoding.RAW),
    ],
)
def test_a_key_that_its_encoding_cannot_hold_is_refused(key: Key, encoding: KeyEncoding) -> None:
    """The error names the key."""
    with pytest.raises(KeyRangeError, match=repr(key)):
        encode(key, encoding)
