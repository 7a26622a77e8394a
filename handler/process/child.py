"""Run a command: start one child, supervise it, and leave no process of it.

The ladder's steps are two instants of `safewriter.schedule`: SIGTERM for everything below this process, then SIGKILL.
"""

from __future__ import annotations

import os
import select
import subprocess
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from signal import Signals
from typing import TYPE_CHECKING, Final

from handler.process.tree import (
    become_subreaper,
    descendants,
    die_with_parent,
    end_all,
    open_to_others,
    resident_mb,
    signal_all,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from handler.process.log import JobLog
    from handler.process.tree import Process
    from handler.spark.command import Command
    from safewriter.deadline import Clock

__all__ = ["Child", "Ended", "Ladder", "Stop", "start"]

_SLICE_S: Final = 0.5
_BEAT_S: Final = 7.0
_END_TIMEOUT_S: Final = 5.0
_CANCEL_GRACE_MS: Final = 5_000
_OOM_SCORE: Final = b"900"


class Stop(StrEnum):
    """The last step of the ladder that the child needed, or its cancellation."""

    TERMINATED = "terminated"
    KILLED = "killed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Ladder:
    """The steps, in milliseconds since the epoch: `terminate_at` and `kill_at` of the schedule."""

    terminate_at_ms: int
    kill_at_ms: int


@dataclass(frozen=True, slots=True)
class Ended:
    """How the child ended: `exit_code`, or the number of the `signal` that ended it. Times are epoch milliseconds.

    `survivors` are processes that could not be killed; empty but for a fault of the kernel.
    """

    exit_code: int | None
    signal: int | None
    stop: Stop | None
    started_ms: int
    ended_ms: int
    peak_mb: int
    survivors: frozenset[Process]


@dataclass(frozen=True, slots=True)
class Child:
    """A command that has been started; `others` are the earlier processes below this one."""

    process: subprocess.Popen[bytes]
    pump: threading.Thread
    others: frozenset[Process]
    started_ms: int

    def supervise(
        self,
        ladder: Ladder,
        *,
        clock: Clock,
        beat: Callable[[], bool] = lambda: True,
        may_run: Callable[[], bool] = lambda: True,
    ) -> Ended:
        """Wait for the command's end and return how it ended; no process of it runs any more, also if this raises.

        `beat` is called every few seconds while it lives; once it returns False the command is ended at once.
        """
        try:
            with _beating(beat) as cancelled:
                is_to_end = lambda: cancelled.is_set() or not may_run()  # noqa: E731
                stop, peak_mb = _descend(self.process, ladder, clock, self.others, is_to_end)
            ended_ms = clock()
            # Before other code reaps it: Popen takes a status that other code has collected for an exit code of 0.
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_END_TIMEOUT_S)
            exit_code, signal = _status(self.process.returncode)
        finally:
            survivors = end_all(without=self.others, timeout_s=_END_TIMEOUT_S)
        self.pump.join(_END_TIMEOUT_S)
        return Ended(exit_code, signal, stop, self.started_ms, ended_ms, peak_mb, survivors)


@contextmanager
def start(command: Command, output: JobLog, *, clock: Clock) -> Iterator[Child]:
    """Start a command, and leave no process of it behind.

    Must be called on the main thread: the child dies with the thread that forked it. Processes below this one that
    exist already are left alone.
    """
    become_subreaper()
    others = descendants()
    started_ms = clock()
    process = _spawn(command)
    if process.stdin is None or process.stdout is None:
        raise AssertionError  # for the type checker: both are pipes
    pump = threading.Thread(target=output.pump, args=(process.stdout,), name="soal-output", daemon=True)
    pump.start()
    try:
        yield Child(process, pump, others, started_ms)
    finally:
        end_all(without=others, timeout_s=_END_TIMEOUT_S)
        pump.join(_END_TIMEOUT_S)
        process.stdin.close()
        if not pump.is_alive():  # else a survivor holds the pipe open, and the thread with it
            process.stdout.close()
        process.poll()  # otherwise Popen believes it alive, if nobody supervised it


def _spawn(command: Command) -> subprocess.Popen[bytes]:
    """Start the child in a session of its own (a terminal's or emulator's signals to our group are not for it)."""
    parent = os.getpid()

    def before_exec() -> None:
        die_with_parent()
        if os.getppid() != parent:
            os._exit(127)  # the parent died before the line above
        # When memory runs out, the kernel should kill the job and not the process that settles its writes. A copy of a
        # process that is closed to others may not even write to its own files in /proc.
        open_to_others()
        with suppress(OSError):
            handle = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
            os.write(handle, _OOM_SCORE)
            os.close(handle)

    return subprocess.Popen(
        command.argv,
        env=dict(command.environment),
        cwd=command.directory,
        stdin=subprocess.PIPE,  # held open: its end tells the child that we are gone
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=before_exec,  # noqa: PLW1509 - the calls in it are plain system calls; libc is loaded already
    )


def _descend(
    process: subprocess.Popen[bytes],
    ladder: Ladder,
    clock: Clock,
    others: frozenset[Process],
    is_to_end: Callable[[], bool],
) -> tuple[Stop | None, int]:
    """Wait for the child's end and go down the ladder; return the last step taken and the highest memory seen."""
    stop: Stop | None = None
    peak_mb = 0
    handle = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        while True:
            step_at_ms = ladder.terminate_at_ms if stop is None else ladder.kill_at_ms
            slice_s = max(0.0, min(_SLICE_S, (step_at_ms - clock()) / 1000))
            if poll.poll(slice_s * 1000):
                return stop, peak_mb
            peak_mb = max(peak_mb, resident_mb(without=others))
            if stop is None and is_to_end():
                stop = Stop.CANCELLED
                signal_all(Signals.SIGTERM, without=others)
                ladder = Ladder(clock(), min(ladder.kill_at_ms, clock() + _CANCEL_GRACE_MS))
            if clock() >= ladder.kill_at_ms:
                signal_all(Signals.SIGKILL, without=others)
                poll.poll(_END_TIMEOUT_S * 1000)
                return stop if stop is Stop.CANCELLED else Stop.KILLED, peak_mb
            if stop is None and clock() >= ladder.terminate_at_ms:
                stop = Stop.TERMINATED
                signal_all(Signals.SIGTERM, without=others)
    finally:
        os.close(handle)


@contextmanager
def _beating(beat: Callable[[], bool]) -> Iterator[threading.Event]:
    """Call `beat` regularly on a thread of its own, so that a slow store does not delay the ladder.

    The returned event is set once `beat` returns False: the child must be ended.
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
