"""The processes that the lab starts: one that answers lines until its input ends, one that is killed at its only job,
and the resource use of a process tree.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Self, cast

import psutil

from scripts.provision.place import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import IO

    from _typeshed import DataclassInstance

__all__ = ["ORDER", "Child", "Ended", "JobProcess", "Peaks", "Usage", "answer", "answers", "asked"]

ORDER: Final = "JOB_ORDER"
"""The variable that holds a job's order, as JSON."""

_ANSWER: Final = "answer "
_SAID_MAX: Final = 4000
_SAMPLE_S: Final = 0.05
_END_TIMEOUT_S: Final = 60.0
_ANSWER_TIMEOUT_S: Final = 900.0
_JOB_TIMEOUT_S: Final = 600


def asked() -> Iterator[dict[str, Any]]:
    """Yield the questions to this process, until its input ends."""
    for line in sys.stdin:
        yield json.loads(line)


def answer(**found: Any) -> None:
    """Answer one question, or report that this process is ready."""
    print(_ANSWER + json.dumps(found), flush=True)


class Child:
    """A context manager: a module that runs in a process of its own, ready once the block is entered.

    It ends with the block, or with this process, even if this one is killed. Its log is a file in `folder`. `inside`:
    the words before the command, for a container. `variables`: added to this process's environment.
    """

    def __init__(
        self,
        module: str,
        arguments: Iterable[object],
        folder: Path,
        inside: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._log = folder / f"{module}-{os.urandom(4).hex()}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*inside, sys.executable, "-P", "-m", module, *map(str, arguments)],
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, **(variables or {})},
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

    def kill(self) -> None:
        """Kill it; its JVM ends with it."""
        self._process.kill()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def ask(self, **question: Any) -> None:
        """Send it a question, without waiting for the answer."""
        print(json.dumps(question), file=self._process.stdin, flush=True)

    def answer(self) -> dict[str, Any]:
        """Wait for its answer. Raises `RuntimeError` if it has ended."""
        for line in cast("IO[str]", self._process.stdout):
            if line.startswith(_ANSWER):
                return dict(json.loads(line.removeprefix(_ANSWER)))
        raise RuntimeError(f"{self._log.stem} has ended: {self._log.read_text()[-_SAID_MAX:]}")

    def wait(self) -> int:
        """Wait for the end of a process that no longer answers, and return its exit code."""
        return self._process.wait(_END_TIMEOUT_S)


def answers(children: Sequence[Child]) -> list[dict[str, Any]]:
    """Wait for all answers. If one process ends or is late, kill all and raise `RuntimeError`."""
    with ThreadPoolExecutor(len(children)) as pool:
        found = [pool.submit(child.answer) for child in children]
        try:
            for one in as_completed(found, timeout=_ANSWER_TIMEOUT_S):
                one.result()
        except TimeoutError:
            raise RuntimeError(f"no answer in {_ANSWER_TIMEOUT_S:.0f} s") from None
        finally:
            if not all(one.done() and one.exception() is None for one in found):
                for child in children:
                    child.kill()
    return [one.result() for one in found]


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that has ended: its start and end on the monotonic clock, in nanoseconds, and its output."""

    began_ns: int
    ended_ns: int
    code: int
    out: str
    errors: str

    @property
    def told(self) -> dict[str, Any]:
        """The job's last line of output that is JSON; empty if the job died before it."""
        lines = [line for line in self.out.splitlines() if line.startswith("{")]
        return dict(json.loads(lines[-1])) if lines else {}


class JobProcess:
    """`python -m MODULE` with an order and variables, in a folder of its own, also for temporary files."""

    def __init__(self, module: str, order: DataclassInstance, variables: Mapping[str, str], folder: Path) -> None:
        self._began_ns = time.monotonic_ns()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PYSPARK_PYTHON": sys.executable,
                "TMPDIR": str(folder),
                ORDER: json.dumps(asdict(order)),
                **variables,
            },
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a process group of its own, which includes Java
        )

    def signal(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the whole group, unless the process was reaped."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def end_java(self) -> None:
        """SIGKILL its JVM alone: the largest process, which the kernel kills first when memory runs out."""
        if self._process.returncode is None:
            with contextlib.suppress(psutil.NoSuchProcess):
                for one in psutil.Process(self._process.pid).children(recursive=True):
                    if one.name() == "java":
                        one.kill()

    def wait(self) -> Ended:
        """Wait for its end, and kill the rest of its group. Raises `RuntimeError` if it hangs."""
        try:
            out, errors = self._process.communicate(timeout=_JOB_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"a job has not ended after {_JOB_TIMEOUT_S} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):  # surviving children are still in its group
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        return Ended(self._began_ns, time.monotonic_ns(), self._process.returncode, out, errors)


class Usage:
    """CPU seconds and memory of a process and its descendants: the `driver`, its `jvm`, the Python `workers`."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU seconds so far, including children that have ended."""
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
