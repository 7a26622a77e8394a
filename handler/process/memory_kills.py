"""Read the kernel's counters of processes killed for memory: of the job if possible, and of the machine.

No exit code shows such a kill: the parent of a killed Python worker sees an ordinary exception. The counter of a
control group is a witness for the job if nothing else runs in the group, as in the function's own container; on a bare
machine the group usually belongs to a whole session. There the local emulator keeps the limit, and has a counter of its
own. Where no group is visible, as on Lambda, there is only the counter of the machine (in a container: of its host),
which does not say whose process was killed.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.process.tree import family

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MemoryKills", "Reading", "read_counters"]

_GROUPS_MAX: Final = 1000
_OOM_KILL: Final = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MemoryKills:
    """The numbers of processes that the kernel killed for memory between two readings; None: no counter."""

    job: int | None
    """Kills in the job, by the counter of a control group in which nothing else runs."""
    machine: int | None
    """Kills on the whole machine, of any process; in a container, on its host."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters at one time. `group` is the control group, if no unrelated process shares it, or the emulator's
    counter, else None.
    """

    group: Path | None
    job: int | None
    machine: int | None

    def until(self, later: Reading) -> MemoryKills:
        """Return the kills between this reading and a later one."""
        is_one = self.group is not None and self.group == later.group
        return MemoryKills(
            job=_difference(self.job, later.job) if is_one else None,
            machine=_difference(self.machine, later.machine),
        )


def read_counters(
    proc: Path = Path("/proc"),
    cgroups: Path = Path("/sys/fs/cgroup"),
    relatives: Callable[[], frozenset[int]] = family,
    emulated: Path | None = None,
) -> Reading:
    """Read all available counters. `relatives` returns the ids of this process, its ancestors and its descendants;
    `emulated` is the counter of the local emulator.
    """
    machine = _counter(proc / "vmstat")
    if emulated is not None:
        return Reading(emulated, _counter(emulated), machine)
    for root, kind, counter in (
        (cgroups, "", "memory.events"),
        (cgroups / "memory", "memory", "memory.oom_control"),
    ):
        group = _group(proc, root, kind)
        kills = None if group is None else _counter(group / counter)
        if group is not None and kills is not None:
            before = relatives()
            is_alone = _processes(group) <= before | relatives()  # a relative may end between two looks
            return Reading(group if is_alone else None, kills if is_alone else None, machine)
    return Reading(None, None, machine)


def _group(proc: Path, root: Path, kind: str) -> Path | None:
    """Return the control group of this process. A container may have the host's name for the group but mount it as the
    root, so take the path whose list of processes has this one.
    """
    try:
        text = (proc / "self" / "cgroup").read_text(encoding="utf-8")
    except OSError:
        return None
    match = re.search(rf"^\d+:{kind}:/(.*)$", text, re.MULTILINE)
    paths = (root, *(() if match is None else (root / match[1],)))
    return next((path for path in reversed(paths) if os.getpid() in _pids_of(path)), None)


def _processes(group: Path) -> frozenset[int]:
    """Return the ids of the processes in a group and the groups below it; 0 is a process that is not visible here."""
    folders = [folder for folder, _, _ in islice(os.walk(group), _GROUPS_MAX + 1)]
    if len(folders) > _GROUPS_MAX:
        return frozenset({0})
    return frozenset().union(*(_pids_of(Path(folder)) for folder in folders))


def _pids_of(group: Path) -> frozenset[int]:
    try:
        return frozenset(map(int, (group / "cgroup.procs").read_text(encoding="ascii").split()))
    except (OSError, ValueError):
        return frozenset()


def _counter(path: Path) -> int | None:
    try:
        match = _OOM_KILL.search(path.read_text(encoding="ascii"))
    except OSError:
        return None
    return None if match is None else int(match[1])


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)
