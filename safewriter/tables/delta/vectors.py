"""Where a deletion vector lies: in the log itself, or in a file beside the table's data files.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#deletion-vector-descriptor-schema
"""

from __future__ import annotations

import base64
import uuid
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["relative_key"]

# The alphabet of ZeroMQ's base85, in which Delta writes UUIDs, and that of Python's: https://rfc.zeromq.org/spec/32/
_Z85: Final = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85: Final = bytes.maketrans(_Z85, _B85)
_UUID_LENGTH: Final = 20


def relative_key(vector: Mapping[str, Any]) -> str | None:
    """Return the key of a vector's file below the table; None for an inline one.

    Raises `ValueError` for one that is stored in another way, at an absolute path for example.
    """
    storage, where = vector.get("storageType"), str(vector.get("pathOrInlineDv"))
    if storage == "i":
        return None
    if storage != "u" or len(where) < _UUID_LENGTH:
        raise ValueError(f"a deletion vector that is stored in an unknown way: {dict(vector)}")
    folder, encoded = where[:-_UUID_LENGTH], where[-_UUID_LENGTH:]
    try:
        name = uuid.UUID(bytes=base64.b85decode(encoded.encode("ascii").translate(_TO_B85)))
    except ValueError as error:
        raise ValueError(f"a deletion vector without a UUID: {where!r}") from error
    return f"{folder}/deletion_vector_{name}.bin" if folder else f"deletion_vector_{name}.bin"
