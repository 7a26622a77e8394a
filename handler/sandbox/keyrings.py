"""The kernel's keyrings of this user, which outlive a process: keyrings(7), user-keyring(7), keyctl(2)."""

from __future__ import annotations

import ctypes
import platform
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TypeAlias

    Key: TypeAlias = tuple[int, int]
    """A keyring, and the number of a key in it."""

__all__ = ["present", "remove_all_but"]

_KEYCTL: Final = {"x86_64": 250, "aarch64": 219}
_UNLINK: Final = 9
_READ: Final = 11
_OF_THE_USER: Final = (-4, -5)
"""The user's own, and that of the user's sessions."""
_KEYS_MAX: Final = 4096
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def present() -> frozenset[Key]:
    """Return the keys; none where the kernel has no keyrings, or forbids the call: then a job can have none either."""
    found = set()
    for keyring in _OF_THE_USER:
        numbers = (ctypes.c_int32 * _KEYS_MAX)()
        size = _keyctl(_READ, keyring, ctypes.addressof(numbers), ctypes.sizeof(numbers))
        for number in numbers[: max(0, min(size, ctypes.sizeof(numbers))) // ctypes.sizeof(ctypes.c_int32)]:
            found.add((keyring, number))
    return frozenset(found)


def remove_all_but(kept: frozenset[Key]) -> None:
    """Remove all keys but those in `kept`."""
    for keyring, number in present() - kept:
        _keyctl(_UNLINK, number, keyring, 0)


def _keyctl(operation: int, *arguments: int) -> int:
    number = _KEYCTL.get(platform.machine())
    if number is None:
        return -1
    return int(_LIBC.syscall(number, operation, *(ctypes.c_long(one) for one in arguments)))
