"""The digest of a key, which determines its shard. It does not depend on how a shard stores the key.

It is that of shardyfusion, whose readers so find our keys. Only a build needs numpy, so only its functions import it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import xxhash

from safewriter.snapshots.errors import KeyRangeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from safewriter.snapshots.format.encoding import Key

__all__ = ["FLIP", "HASH_ALGORITHM", "PRIME", "digest", "digests", "digests_of_integers", "remainders"]

HASH_ALGORITHM: Final = "xxh3_64"
_INT64: Final = struct.Struct("<q")
_SECRET: Final = bytes.fromhex("b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db")
FLIP: Final = int.from_bytes(_SECRET[8:16], "little") ^ int.from_bytes(_SECRET[16:24], "little")
PRIME: Final = 0x9FB21C651E98DF25


def digest(key: Key) -> int:
    """Return the xxh3_64 of a key: of an integer's 8 bytes (signed, little-endian), a text's UTF-8, or bytes as is."""
    if isinstance(key, int):
        try:
            return xxhash.xxh3_64_intdigest(_INT64.pack(key))
        except struct.error:
            raise KeyRangeError(
                f"{key} does not fit into 64 bits with a sign, over which integer keys are hashed"
            ) from None
    if isinstance(key, (str, bytes)):
        return xxhash.xxh3_64_intdigest(key.encode() if isinstance(key, str) else key)
    raise KeyRangeError(f"{key!r} is no key: an integer, a text or bytes is")


def digests_of_integers(keys: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the digests of many integers: XXH3 of eight bytes takes twelve operations.

    Source: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md, XXH3 for inputs of 4 to 8 bytes.
    """
    import numpy as np

    prime = np.uint64(PRIME)
    with np.errstate(over="ignore"):
        value = keys.view(np.uint64)
        value = _rotated(value, 32) ^ np.uint64(FLIP)
        value = value ^ _rotated(value, 49) ^ _rotated(value, 24)
        value = value * prime
        value = value ^ ((value >> np.uint64(35)) + np.uint64(8))
        value = value * prime
        return value ^ (value >> np.uint64(28))


def digests(keys: Sequence[str | bytes]) -> NDArray[np.uint64]:
    """Return the digests of texts or bytes."""
    import numpy as np

    digest_of = xxhash.xxh3_64_intdigest
    return np.fromiter((digest_of(key.encode() if isinstance(key, str) else key) for key in keys), np.uint64, len(keys))


def remainders(keys: pa.Array, modulus: int) -> NDArray[np.int64]:
    """Return the digests of a column without nulls, modulo a number of shards."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_integer(keys.type):
        hashes = digests_of_integers(keys.cast(pa.int64()).to_numpy())
    else:  # Spark's texts may not be valid UTF-8, so do not decode them
        hashes = digests(keys.cast(pa.large_binary()).to_pylist())
    return (hashes % np.uint64(modulus)).astype(np.int64)


def _rotated(value: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    import numpy as np

    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))
