"""System V shared memory, semaphores and queues, which outlive the process that made them.

Sources: sysvipc(7), shmctl(2), semctl(2), msgctl(2), proc(5).
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TypeAlias

    Shared: TypeAlias = tuple[str, int]
    """A kind (`shm`, `sem`, `msg`) and an id."""

__all__ = ["present", "remove_all_but"]

_RMID: Final = 0
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def present(proc: Path = Path("/proc")) -> frozenset[Shared]:
    """Return this user's objects to which no process is attached; none if the kernel has no such objects."""
    objects = set()
    for kind in ("shm", "sem", "msg"):
        try:
            names, *rows = (proc / "sysvipc" / kind).read_text(encoding="ascii").splitlines()
        except (OSError, ValueError):
            continue
        for values in rows:
            row = dict(zip(names.split(), values.split(), strict=False))
            if row["cuid"] == str(os.geteuid()) and row.get("nattch", "0") == "0":
                objects.add((kind, int(values.split()[1])))
    return frozenset(objects)


def remove_all_but(keep: frozenset[Shared]) -> None:
    """Remove all objects except those in `keep`."""
    for kind, number in present() - keep:
        if kind == "shm":
            _LIBC.shmctl(number, _RMID, None)
        elif kind == "sem":
            _LIBC.semctl(number, 0, _RMID)
        else:
            _LIBC.msgctl(number, _RMID, None)
