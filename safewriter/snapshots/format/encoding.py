"""How a shard stores its keys, as bytes."""

from __future__ import annotations

import operator
import struct
from enum import StrEnum
from typing import Final

from safewriter.snapshots.errors import KeyRangeError

__all__ = ["KEY_TYPES", "Key", "KeyEncoding", "encode", "plain"]

Key = int | str | bytes

_LIMITS: Final = {"u64be": 2**63, "u32be": 2**32}


class KeyEncoding(StrEnum):
    """The encoding of a shard's keys."""

    U64BE = "u64be"
    """An integer from 0 to 2^63 - 1, the largest of Spark's, as 8 bytes, big-endian."""
    U32BE = "u32be"
    """An integer from 0 to 2^32 - 1, as 4 bytes, big-endian."""
    UTF8 = "utf8"
    RAW = "raw"

    @property
    def limit(self) -> int | None:
        """The lowest integer that is too large; None if keys are not integers."""
        return _LIMITS.get(self.value)


KEY_TYPES: Final = frozenset({int, str, bytes})
_PACK: Final = {KeyEncoding.U64BE: struct.Struct(">Q").pack, KeyEncoding.U32BE: struct.Struct(">I").pack}


def plain(key: object) -> Key:
    """Return another integer, such as one of NumPy's, as Python's, and any other object as it is."""
    if isinstance(key, bool):
        return key
    try:
        return operator.index(key)  # type: ignore[arg-type] # it raises for what is no integer
    except TypeError:
        return key  # type: ignore[return-value] # the caller refuses it


def encode(key: Key, encoding: KeyEncoding) -> bytes:
    """Return the bytes of a key in a shard. Raises `KeyRangeError` for a key that the encoding does not support."""
    pack = _PACK.get(encoding)
    if pack is not None:
        if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < _LIMITS[encoding.value]:
            return pack(key)
        raise KeyRangeError(
            f"{key!r} is no integer from 0 to {_LIMITS[encoding.value] - 1}, which the encoding {encoding} asks for"
        )
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, bytes):
        return key
    raise KeyRangeError(f"{key!r} is neither text nor bytes, which the encoding {encoding} asks for")
