"""The form in which SeaweedFS's filer backs up the names of files: it takes up such a file faster than any client can
put objects, so that a benchmark may have tables of a hundred thousand files.

https://github.com/seaweedfs/seaweedfs/blob/master/weed/pb/filer.proto: `FullEntry`, `Entry` and `FuseAttributes`
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["backup"]

_BUCKETS: Final = "/buckets"
_BITS: Final = 0x7F
_MORE: Final = 0x80
_MODE: Final = 0o660


def backup(bucket: str, keys: Iterable[str], body: bytes, modified_s: int) -> Iterator[bytes]:
    """Yield the parts of a file for `fs.meta.load` of `weed shell`: objects with the same small body and date.

    `modified_s`: in seconds since the epoch.
    """
    attributes = b"".join(
        (_field(1, len(body)), _field(2, modified_s), _field(3, _MODE), _field(6, modified_s), _field(14, _md5(body)))
    )
    rest = _field(4, attributes) + _field(9, body)
    for key in keys:
        folder, _, name = f"{_BUCKETS}/{bucket}/{key}".rpartition("/")
        entry = _field(1, folder.encode()) + _field(2, _field(1, name.encode()) + rest)
        yield struct.pack(">I", len(entry)) + entry


def _md5(body: bytes) -> bytes:
    """Return the digest that is an object's ETag."""
    return hashlib.md5(body, usedforsecurity=False).digest()


def _field(number: int, value: int | bytes) -> bytes:
    """Return a field of a message in protobuf's encoding."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > _BITS:
        parts.append(value & _BITS | _MORE)
        value >>= 7
    return bytes((*parts, value))
