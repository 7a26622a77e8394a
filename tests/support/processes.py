"""Child processes for tests: they exchange lines, and are killed with all their descendants, never left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Self

import psutil

from scripts.provision.place import ROOT

if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping
    from types import TracebackType

__all__ = ["Child", "has_ended"]


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process runs no more. One whose parent has not asked for its exit code has ended, too."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class Child:
    """`python -m MODULE ARGUMENTS…` from the root of the repository."""

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._arrived = threading.Condition()
        self._ended = False
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._arrived:
                self.lines.append(line.rstrip("\n"))
                self._arrived.notify_all()
        with self._arrived:
            self._ended = True
            self._arrived.notify_all()

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def expect(self, text: str, timeout_s: float = 120) -> None:
        """Wait until a line holds `text`; fails with all output if the process ends or time runs out."""
        with self._arrived:
            found = self._arrived.wait_for(lambda: text in self.lines or self._ended, timeout_s)
        assert found, self.said()
        assert text in self.lines, self.said()

    def said(self) -> str:
        return "\n".join(self.lines[-40:])

    def tree(self) -> list[psutil.Process]:
        try:
            root = psutil.Process(self.process.pid)
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the child."""
        for process in self.tree():
            try:
                process.send_signal(number)
            except psutil.NoSuchProcess:
                continue

    def kill(self) -> None:
        """SIGKILL all processes of the child, again until none is left."""
        for _ in range(100):
            tree = [process for process in self.tree() if not has_ended(process)]
            if not tree:
                break
            for process in tree:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    continue
            psutil.wait_procs(tree[1:], timeout=5)
        self.process.wait(30)  # also a child that had exited before and was not reaped yet
        self._reader.join(30)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def kill_below(self) -> None:
        """SIGKILL the child's descendants, but not the child."""
        below = self.tree()[1:]
        for process in below:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(below, timeout=5)

    def end(self, timeout_s: float = 120) -> int:
        """Wait until it exits by itself."""
        code = self.process.wait(timeout_s)
        self._reader.join(30)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
