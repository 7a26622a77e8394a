"""Linux processes: find and kill all descendants of this one.

Sources: prctl(2), proc(5), waitpid(2). A process group is not enough (any process may leave it), nor is a parent id (an
orphan loses it): so this process becomes the new parent of orphans, and walks the tree below itself.
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
    """A process as the kernel names it: the kernel reuses ids, but no id with the same start time."""

    pid: int
    started_ticks: int


@dataclass(frozen=True, slots=True)
class _Row:
    process: Process
    parent: int
    zombie: bool
    resident_pages: int


def become_subreaper() -> None:
    """Become the parent of all orphans below this process, also of those that called setsid or forked twice."""
    if _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def close_to_others() -> None:
    """Let no process of the same user read or change this one's memory (/proc/PID/mem, ptrace), not even its own
    children, which run other people's code. An exec opens the child again.
    """
    if _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")


def open_to_others() -> None:
    """Undo `close_to_others` in a forked child, as its exec is about to do anyway."""
    _LIBC.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Ask for SIGKILL when the thread that forked this process ends. Survives exec; children do not inherit it."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def process_of(pid: int) -> Process:
    """Return a child of this process that has not been reaped."""
    row = _row(pid)
    if row is None:
        raise ProcessLookupError(f"there is no process {pid}")
    return row.process


def is_living(process: Process) -> bool:
    """Tell whether a process has not ended."""
    row = _row(process.pid)
    return row is not None and row.process == process and not row.zombie


def descendants(*, without: frozenset[Process] = frozenset(), of: int | None = None) -> frozenset[Process]:
    """Return the living processes below this one, or below the process `of`, except those in `without` and what is
    below them.
    """
    return frozenset(row.process for row in _below(without, of) if not row.zombie)


def family() -> frozenset[int]:
    """Return the ids of this process, of all above it, and of all below it, also of those that have just ended."""
    above: list[int] = []
    pid = os.getpid()
    while pid > 0 and (row := _row(pid)) is not None:
        above.append(pid)
        pid = row.parent
    return frozenset({*above, *(row.process.pid for row in _below(frozenset()))})


def resident_mb(*, without: frozenset[Process] = frozenset()) -> int:
    """Return the resident memory of this process and all below it in MiB; pages that are shared count more than
    once.
    """
    rows = _below(without)
    handler = _row(os.getpid())
    pages: int = sum(row.resident_pages for row in (*rows, *((handler,) if handler else ())))
    return pages * _PAGE // _MIB


def signal_all(number: signal.Signals, *, without: frozenset[Process]) -> None:
    """Send a signal to everything below this process once."""
    for process in descendants(without=without):
        _kill(process, number)


def end_these(processes: frozenset[Process], timeout_s: float) -> None:
    """Kill and reap processes, of which the orphans are, or become, children of this one."""

    def remaining() -> list[_Row]:
        rows = (_row(process.pid) for process in processes)
        return [row for row in rows if row is not None and row.process in processes]

    _end(remaining, timeout_s)


def end_all(*, without: frozenset[Process], timeout_s: float) -> frozenset[Process]:
    """Kill and reap everything below this process until nothing is left; return what is left after `timeout_s`.

    Processes may fork while they are being killed: hence the loop. One that cannot be killed sleeps in the kernel.
    """
    return frozenset(row.process for row in _end(lambda: _below(without), timeout_s))


def _end(remaining: Callable[[], list[_Row]], timeout_s: float) -> list[_Row]:
    """Kill and reap what is `remaining`, until nothing is or the time is over; return what is left then."""
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
    """Read /proc/PID/stat; None if the process has gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, in parentheses, may hold blanks and parentheses of its own.
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
