"""A JVM that runs one job after another (io.soal.host.Host): its process, its channel and its output."""

from __future__ import annotations

import io
import os
import resource
import select
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from handler.process.tree import Process, descendants, die_with_parent, end_these, is_living, open_to_others, process_of

if TYPE_CHECKING:
    from typing import BinaryIO

    from handler.spark.command import Command

__all__ = ["Jvm", "Output"]

_END_TIMEOUT_S: Final = 5.0
_LINE_MAX: Final = 32
_CHUNK: Final = 65_536
_IS_READY: Final = b"?"
_OOM_SCORE: Final = b"900"


@dataclass(slots=True)
class Jvm:
    """A JVM that was started for a `command`. A newline on the `channel` starts a job; the JVM answers with a line, the
    ready line, once the job has ended well, or wants another attempt, and nothing of it is left. Any other byte only
    requests the ready line. The JVM exits when the channel closes.
    """

    command: Command
    process: subprocess.Popen[bytes]
    channel: socket.socket
    name: Process
    drivers: Process | None = None
    """The Python fork server that the JVM keeps; None until a ready line has named it."""

    @classmethod
    def start(cls, command: Command) -> Jvm:
        """Start a JVM. Must be called on the main thread: the JVM dies with the thread that forked it."""
        own_end, child_end = socket.socketpair()
        with child_end:
            try:
                process = _spawn(command, child_end)
            except BaseException:
                own_end.close()
                raise
        return cls(command, process, own_end, process_of(process.pid))

    def ask(self) -> None:
        """Start the job that the sandbox's files describe."""
        with suppress(OSError):  # the JVM has ended, which `supervise` learns from the process
            self.channel.sendall(b"\n")

    def gets_ready(self, timeout_s: float) -> bool:
        """Return whether the JVM becomes ready for a job in time. If this returns False, kill the JVM: a late ready
        line would be read as the end of the next job.
        """
        with suppress(OSError):
            self.channel.sendall(_IS_READY)
        select.select([self.channel], [], [], timeout_s)
        return self.report() is not None

    def report(self) -> int | None:
        """Return the last job's exit code, 0 or `EXIT_TRY_AGAIN`, if a ready line has arrived: the JVM is idle and has
        nothing left of the job. Else None. The line has the process id of the fork server, and the exit code.
        """
        try:
            drivers, exit_code = map(int, self.channel.recv(_LINE_MAX, socket.MSG_DONTWAIT).split())
            self.drivers = process_of(drivers)
        except (OSError, ValueError):
            return None
        return exit_code

    @property
    def processes(self) -> frozenset[Process]:
        """The processes that wait for the next job."""
        return frozenset({self.name} if self.drivers is None else {self.name, self.drivers})

    def is_alive(self) -> bool:
        """Return whether JVM and fork server are alive and no message is pending."""
        if self.process.poll() is not None or select.select([self.channel], [], [], 0)[0]:
            return False
        return self.drivers is None or is_living(self.drivers)

    def end(self) -> None:
        """Kill the JVM and its descendants, and close channel and output."""
        below = descendants(of=self.name.pid)
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):  # so that Popen reaps it
            self.process.wait(_END_TIMEOUT_S)
        end_these(below, _END_TIMEOUT_S)
        self.channel.close()
        self.stdout.close()

    @property
    def stdout(self) -> BinaryIO:
        """The pipe with standard output and standard error."""
        if self.process.stdout is None:
            raise AssertionError  # for the type checker
        return self.process.stdout  # type: ignore[return-value]


class Output(io.RawIOBase):
    """The output of a JVM up to its end, or to the end of a job: after `job_has_ended`, the stream ends when the
    buffered output has been read.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._ended = os.eventfd(0, os.EFD_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self._poll.register(self._ended, select.POLLIN)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        ready = {descriptor for descriptor, _ in self._poll.poll()}
        if self._descriptor not in ready:
            return 0
        return os.readv(self._descriptor, [buffer])

    def discard(self) -> None:
        """Drain buffered output that belongs to no job."""
        while select.select([self._descriptor], [], [], 0)[0] and os.read(self._descriptor, _CHUNK):
            pass

    def job_has_ended(self) -> None:
        """Let the stream end after the output written so far."""
        os.eventfd_write(self._ended, 1)

    def close(self) -> None:
        if not self.closed:
            os.close(self._ended)
        super().close()


def _spawn(command: Command, channel: socket.socket) -> subprocess.Popen[bytes]:
    """Start the JVM in its own session, which signals of a terminal or emulator to this process group do not reach."""
    parent = os.getpid()

    def before_exec() -> None:
        die_with_parent()
        if os.getppid() != parent:
            os._exit(127)  # the parent died before the line above
        # Allow no POSIX message queue: it would outlive its job, and could be found only by its name.
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, (0, 0))
        # When memory runs out, the kernel should kill the job, not the process that settles its writes. A fork of a
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
        stdin=channel.fileno(),  # it closes when the handler dies, and the JVM exits
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=before_exec,  # noqa: PLW1509 - the calls in it are plain system calls; libc is loaded already
    )
