"""The function's machine: its cores, and the division of its memory between Java's heap and the rest."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handler.input_errors import InputError, described

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Machine", "heap_mb", "this_machine"]

_MB_PER_CORE: Final = 1769  # https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
_CORES_MAX: Final = 6
_MB_PER_MANAGED_CORE: Final = 2048
"""On Managed Instances, as the stack asks for it (infra.function)."""
_HEAP_MIN_MB: Final = 512
_RESERVE_MIN_MB: Final = 512
_RESERVE_SHARE: Final = 0.35
_HUGE_PAGES: Final = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_UNITS: Final = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}


@dataclass(frozen=True, slots=True)
class Machine:
    """The function's machine: memory as configured, and the cores that this process may use."""

    memory_mb: int
    cores_present: int
    has_huge_pages: bool = False
    """Whether a process may request huge pages; without them, the JVM would warn in the job's log."""
    is_managed: bool = False
    """Whether it is one of Managed Instances."""

    @property
    def cores(self) -> int:
        """The number of cores: Lambda gives one per 1,769 MB, up to six; on Managed Instances one per 2 GB."""
        if self.is_managed:
            return max(1, min(self.memory_mb // _MB_PER_MANAGED_CORE, self.cores_present))
        return max(1, min(math.ceil(self.memory_mb / _MB_PER_CORE), _CORES_MAX, self.cores_present))

    @property
    def reserve_mb(self) -> int:
        """The memory that is not heap.

        It holds the rest of the JVM (metaspace, code, threads, buffers of S3A: about 250 MB), the Python driver and
        this handler (about 100 MB each), and the Python workers of UDFs, whose number grows with the cores and so with
        the memory: hence a share, and a floor.
        """
        return max(_RESERVE_MIN_MB, int(self.memory_mb * _RESERVE_SHARE))

    @property
    def heap_mb(self) -> int:
        """`-Xmx`; below 512 MB Spark does not start."""
        return self.memory_mb - self.reserve_mb


def this_machine(memory_mb: int, *, is_managed: bool = False) -> Machine:
    """Describe the machine that this process runs on."""
    cores = len(os.sched_getaffinity(0))
    return Machine(memory_mb, cores, has_huge_pages=_may_ask_for_huge_pages(), is_managed=is_managed)


def _may_ask_for_huge_pages() -> bool:
    try:
        return "[madvise]" in _HUGE_PAGES.read_text(encoding="ascii")
    except OSError:
        return False


def heap_mb(conf: Mapping[str, str], machine: Machine) -> int:
    """Return the heap in MiB from the settings, or else from the machine; `InputError` if it does not fit."""
    memory = conf.get("spark.driver.memory")
    if memory is None:
        if machine.heap_mb < _HEAP_MIN_MB:
            raise InputError(
                "memory size",
                f"{machine.memory_mb} MB leave {machine.heap_mb} MB for Spark, which needs {_HEAP_MIN_MB} MB; give the"
                f" function at least {_HEAP_MIN_MB + _RESERVE_MIN_MB} MB",
            )
        return machine.heap_mb
    number, unit = re.fullmatch(r"([0-9]+)([a-z])b?", memory.lower(), re.ASCII).groups()  # type: ignore[union-attr]  # checked by confs
    heap_mb = int(int(number) * _UNITS[unit])
    most_mb = machine.memory_mb - _RESERVE_MIN_MB
    if not _HEAP_MIN_MB <= heap_mb <= most_mb:
        raise InputError(
            "conf.spark.driver.memory",
            f"{described(memory)} does not fit: between {_HEAP_MIN_MB}m and {most_mb}m of the function's"
            f" {machine.memory_mb} MB",
        )
    return heap_mb
