"""A job in a process group of its own, which is killed, stopped and waited for as a whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import psutil

from scripts.emulator.spark import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from _typeshed import DataclassInstance

__all__ = ["ORDER", "Ended", "JobProcess"]

ORDER: Final = "JOB_ORDER"
"""The variable in which a job finds its order, as JSON."""

_TIMEOUT_S: Final = 600


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that has ended: its instants on the monotonic clock, in nanoseconds, and what it said."""

    began_ns: int
    ended_ns: int
    code: int
    out: str
    errors: str

    @property
    def told(self) -> dict[str, Any]:
        """What the job has printed as its last line, in JSON; nothing if it did not live to tell."""
        lines = [line for line in self.out.splitlines() if line.startswith("{")]
        return dict(json.loads(lines[-1])) if lines else {}


class JobProcess:
    """`python -m MODULE` with an order and variables, in a folder of its own, where its temporary files lie, too."""

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
            start_new_session=True,  # a group of its own, to which Java belongs
        )

    def signal(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the whole group, as long as it is ours."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def end_java(self) -> None:
        """SIGKILL its Java machine alone: the largest process, which a kernel without memory takes first."""
        if self._process.returncode is None:
            with suppress(psutil.NoSuchProcess):
                for one in psutil.Process(self._process.pid).children(recursive=True):
                    if one.name() == "java":
                        one.kill()

    def wait(self) -> Ended:
        """Wait for its end; nothing of its group is left then. Raises `RuntimeError` if it hangs."""
        try:
            out, errors = self._process.communicate(timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"a job has not ended after {_TIMEOUT_S} s") from None
        finally:
            with suppress(ProcessLookupError):  # what the process has left behind has its group still
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        return Ended(self._began_ns, time.monotonic_ns(), self._process.returncode, out, errors)
