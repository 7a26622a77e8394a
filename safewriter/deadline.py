"""The moment at which this process must be done, as one object that is passed down.

A deadline is an absolute time on this machine's clock. Only "no deadline" is `None`, not a deadline in the past.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from safewriter.errors import SettingError

__all__ = ["Clock", "Deadline", "epoch_ms"]

Clock = Callable[[], int]
"""Returns milliseconds since the epoch."""

# https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
_LONGEST_MS: Final = 900_000
_LONGEST_MANAGED_MS: Final = 5_400_000
_OF_MANAGED: Final = "AWS_LAMBDA_MAX_CONCURRENCY"
"""Lambda sets it on Managed Instances only, whose functions may run longer."""


def epoch_ms() -> int:
    """Return the wall clock of this machine in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def _process_start_ms() -> int:
    """Return when this process was started, from the kernel, so that imports and the JVM's start count too."""
    with open("/proc/self/stat", "rb") as stat:  # noqa: PTH123 - a pseudo file, on the path of every start
        ticks = int(stat.read().rsplit(b")", 1)[1].split()[19])
    with open("/proc/uptime", "rb") as uptime:  # noqa: PTH123
        up_s = float(uptime.read().split()[0])
    return epoch_ms() - int((up_s - ticks / os.sysconf("SC_CLK_TCK")) * 1000)


@dataclass(frozen=True, slots=True)
class Deadline:
    """`at_ms` and `started_ms` are milliseconds since the epoch; between them lies the process's whole time."""

    at_ms: int
    started_ms: int
    clock: Clock = field(default=epoch_ms, compare=False, repr=False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], *, clock: Clock = epoch_ms) -> Deadline | None:
        """Return the deadline that the handler passed, or that Lambda's longest timeout implies, or None off Lambda.

        Raises `SettingError` for a value that is not a number of milliseconds.
        """
        absolute = milliseconds(environment, "SOAL_DEADLINE_EPOCH_MS")
        if absolute is not None:
            started_ms = milliseconds(environment, "SOAL_STARTED_EPOCH_MS")
            return cls(absolute, min(_process_start_ms() if started_ms is None else started_ms, absolute), clock)
        timeout = milliseconds(environment, "LAMBDA_TIMEOUT_MS")
        if timeout is None and "AWS_LAMBDA_FUNCTION_NAME" in environment:
            timeout = _LONGEST_MANAGED_MS if _OF_MANAGED in environment else _LONGEST_MS
        if timeout is None:
            return None
        started_ms = _process_start_ms()
        return cls(started_ms + timeout, started_ms, clock)

    def remaining_ms(self) -> int:
        """Return the time left, negative once it has passed."""
        return self.at_ms - self.clock()


def milliseconds(environment: Mapping[str, str], name: str) -> int | None:
    """Read a whole, non-negative number of milliseconds; None if the variable is not set."""
    text = environment.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit():
        raise SettingError(name, f"{text!r} is not a whole number of milliseconds")
    return int(text)
