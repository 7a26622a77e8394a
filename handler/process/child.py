"""Run a command: let a JVM run its job, supervise both, and ensure that no process of the job survives.

The shutdown sequence, at instants of `safewriter.schedule`: SIGTERM to every descendant of this process, then SIGKILL.
"""

from __future__ import annotations

import io
import os
import select
import subprocess
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from signal import Signals
from typing import TYPE_CHECKING, Final

from handler.process.jvm import Jvm, Output
from handler.process.tree import become_subreaper, descendants, end_all, resident_mb, signal_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from handler.process.log import JobLog
    from handler.process.tree import Process
    from handler.spark.command import Command
    from safewriter.deadline import Clock

__all__ = ["Child", "Ended", "Shutdown", "Stop", "start"]

_SLICE_S: Final = 0.5
_BEAT_S: Final = 7.0
_END_TIMEOUT_S: Final = 5.0
_CANCEL_GRACE_MS: Final = 5_000


class Stop(StrEnum):
    """The last step of the shutdown sequence that the child needed, or its cancellation."""

    TERMINATED = "terminated"
    KILLED = "killed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Shutdown:
    """The shutdown sequence in epoch milliseconds: SIGTERM at `terminate_at_ms`, SIGKILL at `kill_at_ms`."""

    terminate_at_ms: int
    kill_at_ms: int


@dataclass(frozen=True, slots=True)
class Ended:
    """How the child ended: `exit_code`, or the number of the `signal` that ended it. Times are epoch milliseconds.

    `survivors`: the processes that could not be killed, normally empty. `rests`: the job ended well, or wants another
    attempt (`EXIT_TRY_AGAIN`), and its JVM is idle with nothing of the job left in it. `own_exit`: the exit code with
    which the script's process ended before anything told the job to stop, or minus the signal that ended it; None if
    nobody saw that.
    """

    exit_code: int | None
    signal: int | None
    stop: Stop | None
    started_ms: int
    ended_ms: int
    peak_mb: int
    survivors: frozenset[Process]
    own_exit: int | None = None
    rests: bool = False
    reused: bool = False
    """Whether the JVM was idle: it had run another job, or was ready before the first event."""


@dataclass(slots=True)
class Child:
    """A JVM that runs a job. `strangers`: the other descendants of this process. `rests`: as in `Ended`."""

    jvm: Jvm
    output: Output
    lines: io.BufferedReader[Output]
    pump: threading.Thread
    log: JobLog
    strangers: frozenset[Process]
    started_ms: int
    reused: bool = False
    rests: bool = False

    def supervise(
        self,
        shutdown: Shutdown,
        *,
        clock: Clock,
        shutdown_clock: Clock | None = None,
        beat: Callable[[], bool] = lambda: True,
        may_go_on: Callable[[], bool] = lambda: True,
        seen_exit: Callable[[], int | None] = lambda: None,
    ) -> Ended:
        """Wait for the job to end and return how it ended. On return, or if this raises, no process of the job is left.

        `shutdown_clock`: the time of the deadline, if that may come earlier than on `clock`.
        `beat` is called every few seconds while the job runs; if it returns False the job is ended at once. `seen_exit`
        returns the `own_exit` that a witness has seen by now.
        """
        try:
            with _beating(beat) as cancelled:
                is_to_end = lambda: cancelled.is_set() or not may_go_on()  # noqa: E731
                stop, own_exit, peak_mb = _shut_down(
                    self.jvm, shutdown, shutdown_clock or clock, self.strangers, is_to_end, seen_exit
                )
            ended_ms = clock()
            reported = self.jvm.report() if stop is None else None
            self.rests = reported is not None and descendants(without=self.strangers) == self.jvm.processes
            if reported is None:
                # Before other code reaps the JVM: Popen would then report the exit code 0.
                with suppress(subprocess.TimeoutExpired):
                    self.jvm.process.wait(_END_TIMEOUT_S)
                exit_code, signal = _status(self.jvm.process.returncode)
            else:  # the JVM writes its ready line only after the script's own end
                exit_code, signal, own_exit = reported, None, reported
            # If the reader thread is stuck, do not reuse the JVM: the thread would take the next job's output.
            self.rests = self.rests and self.end_output()
        finally:
            spared = self.strangers | (self.jvm.processes if self.rests else frozenset())
            survivors = end_all(without=spared, timeout_s=_END_TIMEOUT_S)
        self.end_output()
        return Ended(
            exit_code=exit_code,
            signal=signal,
            stop=stop,
            started_ms=self.started_ms,
            ended_ms=ended_ms,
            peak_mb=peak_mb,
            survivors=survivors,
            own_exit=own_exit,
            rests=self.rests,
            reused=self.reused,
        )

    def end_output(self) -> bool:
        """Read the output to its end, if need be without the search for secrets; return whether that succeeded."""
        if not self.lines.closed:
            self.output.job_has_ended()
            self.pump.join(_END_TIMEOUT_S)
            if self.pump.is_alive():
                self.log.end_search()
                self.pump.join(_END_TIMEOUT_S)
            if not self.pump.is_alive():
                self.lines.close()
        return not self.pump.is_alive()


@contextmanager
def start(command: Command, output: JobLog, *, clock: Clock, jvm: Jvm | None = None) -> Iterator[Child]:
    """Run a command's job in the idle `jvm`, or in a new JVM, and leave no process of the job behind. Only a JVM that
    is idle again survives; the caller owns it.

    Must be called on the main thread: the JVM dies with the thread that forked it. Existing other descendants of this
    process are left alone.
    """
    become_subreaper()
    strangers = descendants(without=frozenset() if jvm is None else frozenset({jvm.name}))
    started_ms, reused = clock(), jvm is not None and jvm.drivers is not None
    jvm = jvm or Jvm.start(command)
    child: Child | None = None
    try:
        child = _ask(jvm, output, strangers, started_ms, reused=reused)
        yield child
    finally:
        rests = child is not None and child.rests
        if not rests:
            end_all(without=strangers, timeout_s=_END_TIMEOUT_S)
        if child is not None:
            child.end_output()
        if not rests:
            jvm.end()


def _ask(jvm: Jvm, output: JobLog, strangers: frozenset[Process], started_ms: int, *, reused: bool) -> Child:
    """Make a JVM start the job, and begin to read its output."""
    stream = Output(jvm.stdout.fileno())
    stream.discard()
    jvm.ask()
    lines = io.BufferedReader(stream)
    pump = threading.Thread(target=output.pump, args=(lines,), name="soal-output", daemon=True)
    pump.start()
    return Child(jvm, stream, lines, pump, output, strangers, started_ms, reused)


def _shut_down(
    jvm: Jvm,
    shutdown: Shutdown,
    clock: Clock,
    strangers: frozenset[Process],
    is_to_end: Callable[[], bool],
    seen_exit: Callable[[], int | None],
) -> tuple[Stop | None, int | None, int]:
    """Wait for the end of the job or its JVM and run the shutdown sequence; return the last step taken, the script's
    own exit, and the highest memory seen.
    """
    stop: Stop | None = None
    own_exit: int | None = None
    peak_mb = 0
    handle = os.pidfd_open(jvm.process.pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.register(jvm.channel, select.POLLIN)
        while True:
            step_at_ms = shutdown.terminate_at_ms if stop is None else shutdown.kill_at_ms
            slice_s = max(0.0, min(_SLICE_S, (step_at_ms - clock()) / 1000))
            if poll.poll(slice_s * 1000):
                return stop, seen_exit() if stop is None else own_exit, peak_mb
            peak_mb = max(peak_mb, resident_mb(without=strangers))
            if stop is None:
                if is_to_end():
                    stop = Stop.CANCELLED
                    shutdown = Shutdown(clock(), min(shutdown.kill_at_ms, clock() + _CANCEL_GRACE_MS))
                elif clock() >= shutdown.terminate_at_ms:
                    stop = Stop.TERMINATED
                if stop is not None:
                    own_exit = seen_exit()  # before the signal: a script may answer it by exit(0)
                    signal_all(Signals.SIGTERM, without=strangers)
            if clock() >= shutdown.kill_at_ms:
                signal_all(Signals.SIGKILL, without=strangers)
                poll.poll(_END_TIMEOUT_S * 1000)
                return stop if stop is Stop.CANCELLED else Stop.KILLED, own_exit, peak_mb
    finally:
        os.close(handle)


@contextmanager
def _beating(beat: Callable[[], bool]) -> Iterator[threading.Event]:
    """Call `beat` regularly on its own thread, so that a slow store does not delay the shutdown sequence.

    The yielded event is set once `beat` returns False: the child must be ended.
    """
    ended, cancelled = threading.Event(), threading.Event()

    def run() -> None:
        while not ended.wait(_BEAT_S):
            if not beat():
                cancelled.set()

    thread = threading.Thread(target=run, name="soal-lease", daemon=True)
    thread.start()
    try:
        yield cancelled
    finally:
        ended.set()
        thread.join(_SLICE_S)


def _status(returncode: int | None) -> tuple[int | None, int | None]:
    """Split Popen's return code into an exit code or a signal."""
    if returncode is None:
        return None, None
    return (returncode, None) if returncode >= 0 else (None, -returncode)
