"""Limit a function's memory where no control group can be made (that needs root): scripts/process_owner.py looks at
the function's processes, and does at the limit what Lambda's kernel does: it kills the process with the highest score,
and counts the kill.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.process.tree import descendants, end_these, is_living

if TYPE_CHECKING:
    from handler.process.tree import Process

_LOOK_AT_MOST_S: Final = 0.5
_LOOK_AT_LEAST_S: Final = 0.005
_MB_PER_S: Final = 4096
"""How fast processes may take memory; the next look comes before they can have used up the rest."""
_KB: Final = 1024
# Without the pages of files, which the kernel takes back before it kills.
_HELD: Final = re.compile(r"^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB$", re.MULTILINE)
_SHARE: Final = re.compile(r"^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB$", re.MULTILINE)


class MemoryLimit:
    """At most `limit_mb` (MiB) for the descendants of this process. `counter` is a file in the form of the kernel's, as
    long as this process lives; the handler reads it (SOAL_MEMORY_KILLS).
    """

    def __init__(self, limit_mb: int) -> None:
        self._limit_mb = limit_mb
        self._file = os.memfd_create("memory-kills")
        self.counter = Path(f"/proc/{os.getpid()}/fd/{self._file}")
        self._kills = 0
        self._victim: Process | None = None
        self._count()

    def look(self) -> float:
        """Kill a process if they hold more than the limit; return in how many seconds to look again."""
        if self._victim is not None and is_living(self._victim):
            return _LOOK_AT_LEAST_S  # its memory is on the way back
        held_kb = {process: _kb(process, "status", _HELD) or 0 for process in descendants()}
        used_kb = sum(held_kb.values())
        if used_kb > self._limit_mb * _KB:  # a page of several processes was counted in each of them
            used_kb = sum(min(kb, _share_kb(process, kb)) for process, kb in held_kb.items())
        left_mb = self._limit_mb - used_kb / _KB
        if left_mb >= 0:
            return max(_LOOK_AT_LEAST_S, min(_LOOK_AT_MOST_S, left_mb / _MB_PER_S))
        self._victim = max(held_kb, key=lambda process: (_score(process), held_kb[process]))
        self._kills += 1
        self._count()  # first: the handler reads it as soon as the process has ended
        end_these(frozenset({self._victim}), timeout_s=0)
        return _LOOK_AT_LEAST_S

    def _count(self) -> None:
        os.pwrite(self._file, f"oom_kill {self._kills}\n".encode(), 0)


def _share_kb(process: Process, held_kb: int) -> int:
    """Return the memory of a process with its share of common pages; `held_kb` where nobody else may see that, 0 if the
    process has ended meanwhile.
    """
    share_kb = _kb(process, "smaps_rollup", _SHARE)
    if share_kb is None:
        return held_kb if is_living(process) else 0
    return share_kb


def _kb(process: Process, file: str, lines: re.Pattern[str]) -> int | None:
    """Return the sum of some lines of a file in /proc/PID; None without such lines."""
    with suppress(OSError):
        found = lines.findall(Path(f"/proc/{process.pid}/{file}").read_text(encoding="utf-8", errors="replace"))
        return sum(map(int, found)) if found else None
    return None


def _score(process: Process) -> int:
    """Return what the process adds to the kernel's score of victims."""
    with suppress(OSError, ValueError):
        return int(Path(f"/proc/{process.pid}/oom_score_adj").read_text(encoding="ascii"))
    return 0
