"""Reuse of a JVM: a job that ended well, or by its own step, leaves JVM and emptied sandbox to the next job."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handler.process.jvm import Jvm
from handler.process.tree import become_subreaper
from handler.sandbox.sandbox import NoSpaceError, Sandbox, check_space, open_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from handler.sandbox.sandbox import Shape
    from handler.spark.command import Command

__all__ = ["Reuse", "SandboxAndJvm"]


def _always() -> bool:
    return True


def _nobody(_: str) -> None:
    """Ignore a warning."""


@dataclass(slots=True)
class SandboxAndJvm:
    """A sandbox and the idle JVM in it, if any."""

    sandbox: Sandbox
    shape: Shape
    stack: ExitStack
    jvm: Jvm | None = None
    keeps: bool = False
    """Whether the JVM stays idle for the next job."""

    def jvm_for(self, command: Command) -> Jvm | None:
        """Return the idle JVM if it can run the job of a command; otherwise kill it and return None."""
        if self.jvm is not None and not (self.jvm.command == command and self.jvm.is_alive()):
            self.end()
        return self.jvm

    def keep(self, jvm: Jvm) -> None:
        """Keep an idle JVM for the next job."""
        self.jvm, self.keeps = jvm, True

    def end(self) -> None:
        """Kill the JVM."""
        if self.jvm is not None:
            self.jvm.end()
        self.jvm, self.keeps = None, False


@dataclass(slots=True)
class Reuse:
    """Keeps at most one JVM between the jobs of this process."""

    _spare: SandboxAndJvm | None = field(default=None)
    _may_clean: Callable[[], bool] = field(default=_always)
    """Whether there is time to empty a sandbox. The current invocation decides, also for an earlier one's sandbox."""
    _warn: Callable[[str], None] = field(default=_nobody)

    @property
    def sandbox(self) -> Path | None:
        """The directory of the idle JVM."""
        return None if self._spare is None else self._spare.sandbox.root

    def begin(
        self,
        folder: Path,
        command_for: Callable[[Sandbox], Command],
        *,
        ready_within_s: float | None = None,
        may_clean: Callable[[], bool] = _always,
    ) -> None:
        """Start a JVM before a job arrives. Must be called on the main thread.

        Remove leftovers of earlier processes as long as `may_clean` returns True. With `ready_within_s`, return once
        the JVM is ready for a job, and kill it if it is not in that time.
        """
        self._may_clean = may_clean
        place = self._fresh(folder)
        with place.stack.pop_all() as stack:
            become_subreaper()
            jvm = Jvm.start(command_for(place.sandbox))
            place.keep(jvm)
            if ready_within_s is None or jvm.gets_ready(ready_within_s):
                place.stack = stack.pop_all()
                self._spare = place

    def tidy(self, within_s: float) -> bool:
        """Let the idle JVM collect its garbage, before a memory snapshot is taken of it; return whether it has."""
        jvm = None if self._spare is None else self._spare.jvm
        return jvm is not None and jvm.gets_ready(within_s)

    @contextmanager
    def place(
        self,
        folder: Path,
        *,
        may_clean_before: Callable[[], bool] = _always,
        may_clean_after: Callable[[], bool] = _always,
        warn: Callable[[str], None] = _nobody,
    ) -> Iterator[SandboxAndJvm]:
        """Give a job a sandbox below `folder`: that of the idle JVM, or a fresh one.

        At the end, kill the JVM and remove the sandbox, unless the JVM is kept and the sandbox can be emptied in time.
        If the time does not suffice, call `warn`; the next job removes the rest. Raises `NoSpaceError`.
        """
        self._may_clean, self._warn = may_clean_before, warn
        place, self._spare = self._spare, None
        if place is not None:
            try:
                check_space(folder)
            except NoSpaceError:  # the idle JVM may hold deleted files open
                place.stack.close()
                place = None
        place = place or self._fresh(folder)
        with place.stack.pop_all() as stack:
            place.keeps = False
            try:
                yield place
            finally:
                self._may_clean = may_clean_after
            if place.keeps and place.sandbox.renew(place.shape, may_clean_after):
                place.stack = stack.pop_all()
                self._spare = place

    def _has_time(self) -> bool:
        return self._may_clean()

    def _tell(self, warning: str) -> None:
        self._warn(warning)

    def _fresh(self, folder: Path) -> SandboxAndJvm:
        stack = ExitStack()
        sandbox = stack.enter_context(open_sandbox(folder, may_go_on=self._has_time, warn=self._tell))
        place = SandboxAndJvm(sandbox, sandbox.shape, stack)
        stack.callback(place.end)  # before the sandbox is removed
        return place
