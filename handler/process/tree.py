"""Linux processes: find and kill all descendants of this one.

Sources: prctl(2), proc(5), waitpid(2). A process group is not enough (any process may leave it), nor is a parent id (an
orphan loses it): so this process becomes the parent of orphans, and walks the tree below itself.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Process",
    "become_subreaper",
    "close_to_others",
    "descendants",
    "die_with_parent",
    "end_all",
    "end_these",
    "family",
    "is_living",
    "open_to_others",
    "process_of",
    "resident_mb",
    "signal_all",
]

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_PAUSE_S: Final = 0.002
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Process:
    """The identity of a process: the kernel reuses ids, but not with the same start time."""

    pid: int
    started_ticks: int


@dataclass(frozen=True, slots=True)
class _Row:
    process: Process
    parent: int
    zombie: bool
    resident_pages: int


def become_subreaper() -> None:
    """Become the parent of all orphans below this process, also after setsid or a double fork."""
    if _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def close_to_others() -> None:
    """Keep other processes of the same user from reading or changing this one's memory (/proc/PID/mem, ptrace), even
    its own children, which run other people's code. An exec lifts this in a child.
    """
    if _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")


def open_to_others() -> None:
    """Undo `close_to_others` in a forked child shortly before its exec would."""
    _LIBC.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Ask for SIGKILL when the thread that forked this process ends. Survives exec; children do not inherit it."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def process_of(pid: int) -> Process:
    """Return the identity of a process that has not been reaped; `ProcessLookupError` if there is none."""
    row = _row(pid)
    if row is None:
        raise ProcessLookupError(f"there is no process {pid}")
    return row.process


def is_living(process: Process) -> bool:
    """Return whether a process is running; a zombie is not."""
    row = _row(process.pid)
    return row is not None and row.process == process and not row.zombie


def descendants(*, without: frozenset[Process] = frozenset(), of: int | None = None) -> frozenset[Process]:
    """Return the living descendants of this process, or of the process `of`, except the processes in `without` and
    their descendants.
    """
    return frozenset(row.process for row in _below(without, of) if not row.zombie)


def family() -> frozenset[int]:
    """Return the ids of this process, its ancestors and its descendants, including zombies."""
    above: list[int] = []
    pid = os.getpid()
    while pid > 0 and (row := _row(pid)) is not None:
        above.append(pid)
        pid = row.parent
    return frozenset({*above, *(row.process.pid for row in _below(frozenset()))})


def resident_mb(*, without: frozenset[Process] = frozenset()) -> int:
    """Return the resident memory of this process and its descendants in MiB; a shared page counts in each process."""
    rows = _below(without)
    handler = _row(os.getpid())
    pages: int = sum(row.resident_pages for row in (*rows, *((handler,) if handler else ())))
    return pages * _PAGE // _MIB


def signal_all(number: signal.Signals, *, without: frozenset[Process]) -> None:
    """Send a signal once to every descendant of this process."""
    for process in descendants(without=without):
        _kill(process, number)


def end_these(processes: frozenset[Process], timeout_s: float) -> None:
    """Kill and reap processes; this process is, or becomes, the parent of any orphans among them."""

    def remaining() -> list[_Row]:
        rows = (_row(process.pid) for process in processes)
        return [row for row in rows if row is not None and row.process in processes]

    _end(remaining, timeout_s)


def end_all(*, without: frozenset[Process], timeout_s: float) -> frozenset[Process]:
    """Kill and reap the descendants of this process until none is left; return those left after `timeout_s`.

    The loop is for processes that fork while they are being killed. An unkillable process sleeps in the kernel.
    """
    return frozenset(row.process for row in _end(lambda: _below(without), timeout_s))


def _end(remaining: Callable[[], list[_Row]], timeout_s: float) -> list[_Row]:
    """Kill and reap the `remaining` processes until there are none or the time is over; return those left."""
    until = time.monotonic() + timeout_s
    while True:
        rows = remaining()
        for row in rows:
            if row.zombie:
                _reap(row)
            else:
                _kill(row.process, signal.SIGKILL)
        if not rows or time.monotonic() >= until:
            return rows
        time.sleep(_PAUSE_S)


def _below(without: frozenset[Process], of: int | None = None) -> list[_Row]:
    children: dict[int, list[_Row]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names only, and often
        if name.isdigit() and (row := _row(int(name))) is not None:
            children.setdefault(row.parent, []).append(row)
    rows: list[_Row] = []
    todo = [os.getpid() if of is None else of]
    while todo:
        for row in children.get(todo.pop(), ()):
            if row.process not in without:
                rows.append(row)
                todo.append(row.process.pid)
    return rows


def _row(pid: int) -> _Row | None:
    """Read /proc/PID/stat; None if the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, in parentheses, may itself hold blanks and parentheses.
    fields = text.rpartition(b")")[2].split()
    return _Row(
        process=Process(pid, int(fields[19])),
        parent=int(fields[1]),
        zombie=fields[0] in (b"Z", b"X"),
        resident_pages=int(fields[21]),
    )


def _kill(process: Process, number: signal.Signals) -> None:
    row = _row(process.pid)
    if row is not None and row.process == process:
        try:
            os.kill(process.pid, number)
        except (ProcessLookupError, PermissionError):
            return  # ended meanwhile; or a setuid program's, which end_all reports as left


def _reap(row: _Row) -> None:
    if row.parent == os.getpid():
        try:
            os.waitpid(row.process.pid, os.WNOHANG)
        except ChildProcessError:
            return  # reaped elsewhere
