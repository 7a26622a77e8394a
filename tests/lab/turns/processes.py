"""The three processes of the demonstration: started, given one task after the other, ended."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Final, Self, cast

from scripts.emulator.spark import ROOT
from tests.lab.turns.workload import JOBS, Job

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import IO

__all__ = ["Processes"]

_ANSWER_S: Final = 900
_SAID_MAX: Final = 4000
_MODULE: Final = "tests.lab.turns.job"


class Processes:
    """A context manager. `folder` takes their logs. Raises RuntimeError once one of them has failed."""

    def __init__(self, environ: Mapping[str, str], folder: Path) -> None:
        self._environ, self._folder = environ, folder
        self._processes: dict[Job, subprocess.Popen[str]] = {}
        self._readers: list[threading.Thread] = []
        self._lines: queue.Queue[tuple[Job, str]] = queue.Queue()

    def __enter__(self) -> Self:
        for job in JOBS:
            with self._log(job).open("wb") as log:
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", _MODULE, job],
                    env={**self._environ, "PYTHONPATH": str(ROOT), "SOAL_RUN_KEY": f"{job}-{self._folder.name}"},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
            self._processes[job] = process
            reader = threading.Thread(target=self._read, args=(job, process), name=f"{job}-reader")
            self._readers.append(reader)
            reader.start()
        try:
            self._answers("ready")
        except BaseException:
            self._end(at_once=True)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end(at_once=kind is not None)

    def run(self, task: str) -> None:
        """Give all of them a task, and wait until each has done it."""
        for process in self._processes.values():
            print(task, file=process.stdin, flush=True)
        self._answers("done")

    def _read(self, job: Job, process: subprocess.Popen[str]) -> None:
        for line in cast("IO[str]", process.stdout):
            self._lines.put((job, line.strip()))
        self._lines.put((job, ""))

    def _answers(self, wanted: str) -> None:
        missing = set(JOBS)
        while missing:
            try:
                job, line = self._lines.get(timeout=_ANSWER_S)
            except queue.Empty:
                raise RuntimeError(f"{', '.join(sorted(missing))}: no answer in {_ANSWER_S} s") from None
            if line == wanted:
                missing.discard(job)
            elif not line:
                said = self._log(job).read_text(errors="replace")
                raise RuntimeError(f"{job} has ended: {said[-_SAID_MAX:]}")

    def _end(self, *, at_once: bool) -> None:
        for process in self._processes.values():
            cast("IO[str]", process.stdin).close()  # the end of its input is its end
            if at_once:
                process.kill()  # its Java machine ends with it
        for process in self._processes.values():
            process.wait()
        for reader in self._readers:
            reader.join()
        for process in self._processes.values():
            cast("IO[str]", process.stdout).close()

    def _log(self, job: Job) -> Path:
        return self._folder / f"{job}.log"
