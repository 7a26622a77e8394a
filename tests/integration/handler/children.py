"""A child of plain Python, its log, and a check for processes that it leaves."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psutil

from handler.process.child import Shutdown, start
from handler.process.log import JobLog
from handler.redaction.redact import Redactor
from handler.spark.command import Command
from safewriter.deadline import epoch_ms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from handler.process.child import Ended

NEVER = Shutdown(terminate_at_ms=2**60, kill_at_ms=2**60)
FORK_AWAY = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        open("away", "x").close()
        time.sleep(600)
    os._exit(0)
os.wait()
while not os.path.exists("away"):
    time.sleep(0.01)
"""


class Since:
    """A clock that stands at 0 until the child has printed a line, and then counts from 1."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._start_ms: int | None = None

    def __call__(self) -> int:
        if self._start_ms is None:
            self._start_ms = epoch_ms() - 1 if self._log.lines else None
        return 0 if self._start_ms is None else epoch_ms() - self._start_ms


class Log:
    def __init__(self, known: tuple[str, ...] = (), logged_max: int = 2**24) -> None:
        self.lines: list[str] = []
        self.metrics: list[str] = []
        self.output = JobLog(Redactor(known), log=self.lines.append, metric=self.metrics.append, logged_max=logged_max)


def run(directory: Path, code: str, log: Log, shutdown: Shutdown = NEVER, **environment: str) -> Ended:
    """Run a child; the times of `shutdown` are milliseconds after its first line."""
    command = Command((sys.executable, "-u", "-c", code), environment, directory)
    clock = Since(log)
    with start(command, log.output, clock=clock) as child:
        return child.supervise(shutdown, clock=clock)


@contextmanager
def nothing_left() -> Iterator[None]:
    """Check that no process, dead or alive, is left below this one that was not there before."""
    before = _all_below()
    yield
    assert _all_below() - before == set()


def _all_below() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}
