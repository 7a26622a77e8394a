"""Keys: how a key is stored in a shard, and how it is hashed to find the shard.

The two are independent: a hash is taken over the key itself, whatever the encoding of the stored key. Both are those of
shardyfusion's snapshots, so that its readers find our keys.
"""

from __future__ import annotations

import struct
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np
import xxhash

from safewriter.snapshots.errors import KeyRangeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Key", "KeyEncoding", "digest", "digests_of_integers", "encode"]

Key = int | str | bytes

_MIN, _MAX = -(2**63), 2**63 - 1
_SECRET: Final = bytes.fromhex("b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db")
_FLIP: Final = np.uint64(int.from_bytes(_SECRET[8:16], "little") ^ int.from_bytes(_SECRET[16:24], "little"))
_PRIME: Final = np.uint64(0x9FB21C651E98DF25)


class KeyEncoding(StrEnum):
    """How a shard stores its keys."""

    U64BE = "u64be"
    """An integer from 0 to 2^64 - 1, as 8 bytes, big-endian."""
    U32BE = "u32be"
    """An integer from 0 to 2^32 - 1, as 4 bytes, big-endian."""
    UTF8 = "utf8"
    RAW = "raw"

    @property
    def limit(self) -> int | None:
        """The lowest integer that is too large; None for keys that are no integers."""
        return {KeyEncoding.U64BE: 2**64, KeyEncoding.U32BE: 2**32}.get(self)


def encode(key: Key, encoding: KeyEncoding) -> bytes:
    """Return the bytes by which a shard stores a key. Raises `KeyRangeError` for a key that it cannot hold."""
    limit = encoding.limit
    if limit is not None:
        if not isinstance(key, int) or isinstance(key, bool) or not 0 <= key < limit:
            raise KeyRangeError(f"{key!r} is no integer from 0 to {limit - 1}, which the encoding {encoding} asks for")
        return struct.pack(">Q" if encoding is KeyEncoding.U64BE else ">I", key)
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, bytes):
        return key
    raise KeyRangeError(f"{key!r} is neither text nor bytes, which the encoding {encoding} asks for")


def digest(key: Key) -> int:
    """Return the xxh3_64 of a key: of an integer's 8 bytes (signed, little-endian), a text's UTF-8, bytes as is."""
    if isinstance(key, int):
        if not _MIN <= key <= _MAX:
            raise KeyRangeError(f"{key} does not fit into 64 bits with a sign, over which integer keys are hashed")
        return xxhash.xxh3_64_intdigest(key.to_bytes(8, "little", signed=True))
    if isinstance(key, (str, bytes)):
        return xxhash.xxh3_64_intdigest(key.encode() if isinstance(key, str) else key)
    raise KeyRangeError(f"{key!r} is no key: an integer, a text or bytes is")


def digests_of_integers(keys: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the same for many integers at once: XXH3 of eight bytes is twelve operations.

    Source: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md, XXH3 for inputs of 4 to 8 bytes.
    """
    with np.errstate(over="ignore"):
        value = keys.view(np.uint64)
        value = _rotated(value, 32) ^ _FLIP
        value = value ^ _rotated(value, 49) ^ _rotated(value, 24)
        value = value * _PRIME
        value = value ^ ((value >> np.uint64(35)) + np.uint64(8))
        value = value * _PRIME
        return value ^ (value >> np.uint64(28))


def digests(keys: Sequence[str | bytes]) -> NDArray[np.uint64]:
    """Return the same for texts or bytes."""
    one = xxhash.xxh3_64_intdigest
    return np.fromiter((one(key.encode() if isinstance(key, str) else key) for key in keys), np.uint64, len(keys))


def _rotated(value: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))
