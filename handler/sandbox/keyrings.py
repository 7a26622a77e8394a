"""The keyrings of this user and session, which outlive a process: keyrings(7), user-keyring(7), keyctl(2)."""

from __future__ import annotations

import ctypes
import errno
import platform
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TypeAlias

    Key: TypeAlias = tuple[int, int]
    """A keyring, and the number of a key in it."""

__all__ = ["present", "remove_all_but"]

_KEYCTL: Final = {"x86_64": 250, "aarch64": 219}
_SETPERM: Final = 5
_UNLINK: Final = 9
_READ: Final = 11
_GET_PERSISTENT: Final = 22
_SHARED: Final = (-3, -4, -5)
"""The session keyring, which the job's processes share, the user keyring and the user session keyring."""
_OF_THIS_PROCESS: Final = -2
_THIS_USER: Final = -1
_RIGHTS: Final = 0x1F3F0000
"""The kernel's default rights of these keyrings."""
_KEYS_MAX: Final = 4096
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def present() -> frozenset[Key]:
    """Return the keys; none if the kernel has no keyrings or forbids the call, so that a job cannot have keys either.

    Raises `PermissionError` for a keyring that hides its keys: a job may have removed the rights, also for this
    process.
    """
    keys = set()
    for keyring in (*_SHARED, *_persistent()):
        numbers = (ctypes.c_int32 * _KEYS_MAX)()
        size = _keyctl(_READ, keyring, ctypes.addressof(numbers), ctypes.sizeof(numbers))
        if size < 0 and ctypes.get_errno() == errno.EACCES:
            _keyctl(_SETPERM, keyring, _RIGHTS)
            size = _keyctl(_READ, keyring, ctypes.addressof(numbers), ctypes.sizeof(numbers))
            if size < 0:
                raise PermissionError(f"a keyring of this user ({keyring}) shows its keys to nobody")
        for number in numbers[: max(0, min(size, ctypes.sizeof(numbers))) // ctypes.sizeof(ctypes.c_int32)]:
            keys.add((keyring, number))
    return frozenset(keys)


def remove_all_but(keep: frozenset[Key]) -> int:
    """Remove all keys except those in `keep`; return how many could not be removed. Raises the errors of `present`."""
    for keyring, number in present() - keep:
        if _keyctl(_UNLINK, number, keyring, 0) != 0 and ctypes.get_errno() == errno.EACCES:
            _keyctl(_SETPERM, keyring, _RIGHTS)
            _keyctl(_UNLINK, number, keyring, 0)
    return len(present() - keep)


def _persistent() -> tuple[int, ...]:
    """Return the keyring that outlives all processes of the user, if the kernel has one."""
    number = _keyctl(_GET_PERSISTENT, _THIS_USER, _OF_THIS_PROCESS)
    return (number,) if number > 0 else ()


def _keyctl(operation: int, *arguments: int) -> int:
    number = _KEYCTL.get(platform.machine())
    if number is None:
        return -1
    return int(_LIBC.syscall(number, operation, *(ctypes.c_long(argument) for argument in arguments)))
