"""Processes of a benchmark that are measured apart: each answers the lines that it is told, and ends with its input."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, Self, cast

import psutil

from scripts.emulator.spark import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import IO

__all__ = ["Child", "Peaks", "Usage", "answer", "asked"]

_ANSWER: Final = "answer "
_SAID_MAX: Final = 4000
_SAMPLE_S: Final = 0.05
_END_TIMEOUT_S: Final = 60.0


def asked() -> Iterator[dict[str, Any]]:
    """Yield what this process is asked, until its input ends."""
    for line in sys.stdin:
        yield json.loads(line)


def answer(**found: Any) -> None:
    """Answer one question, or tell that this process is ready."""
    print(_ANSWER + json.dumps(found), flush=True)


class Child:
    """A context manager: a module that runs in a process of its own, ready once the block is entered.

    It ends with the block, or with this process, even if this one is killed. What it logs is in a file in `folder`.
    `inside`: the words before the command, for a container.
    """

    def __init__(self, module: str, arguments: Iterable[object], folder: Path, inside: Sequence[str] = ()) -> None:
        self._log = folder / f"{module}-{os.urandom(4).hex()}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*inside, sys.executable, "-P", "-m", module, *map(str, arguments)],
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.ready: dict[str, Any] = {}

    def __enter__(self) -> Self:
        try:
            self.ready = self.answer()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._process as process:
            cast("IO[str]", process.stdin).close()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, **question: Any) -> None:
        """Ask it, without waiting for the answer."""
        print(json.dumps(question), file=self._process.stdin, flush=True)

    def answer(self) -> dict[str, Any]:
        """Wait for its answer. Raises `RuntimeError` if it has ended."""
        for line in cast("IO[str]", self._process.stdout):
            if line.startswith(_ANSWER):
                return dict(json.loads(line.removeprefix(_ANSWER)))
        raise RuntimeError(f"{self._log.stem} has ended: {self._log.read_text()[-_SAID_MAX:]}")

    def wait(self) -> int:
        """Wait for the end of a process that answers no more, and return its exit code."""
        return self._process.wait(_END_TIMEOUT_S)


class Usage:
    """The CPU seconds and the memory of a process and those below it: the `driver`, its `jvm`, the Python `workers`."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU seconds so far, with those of processes that have ended."""
        spent: dict[str, float] = defaultdict(float)
        for kind, process in self._processes():
            spent[kind] += sum(process.cpu_times()[:4])  # user, system, and both of the children that have ended
        return spent

    def memory_mb(self) -> dict[str, float]:
        """Return the resident memory now. `worker`: of the largest one; pages that workers share count for each."""
        held: dict[str, float] = defaultdict(float)
        for kind, process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                size_mb = process.memory_info().rss / 2**20
                held[kind] += size_mb
                if kind == "workers":
                    held["worker"] = max(held["worker"], size_mb)
        return held

    def _processes(self) -> Iterator[tuple[str, psutil.Process]]:
        yield "driver", self._root
        for process in self._root.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                yield ("jvm" if process.name() == "java" else "workers"), process


class Peaks:
    """A context manager that samples the memory of processes; `mb` holds the peak of each kind."""

    def __init__(self, usage: Usage) -> None:
        self.mb: dict[str, float] = defaultdict(float)
        self._usage = usage
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while True:
            for kind, size_mb in self._usage.memory_mb().items():
                self.mb[kind] = max(self.mb[kind], size_mb)
            if self._ended.wait(_SAMPLE_S):
                return
