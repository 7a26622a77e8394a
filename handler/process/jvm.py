"""A JVM that runs jobs, one after the other (io.soal.host.Host): its process, its channel and its output."""

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
    """A JVM that has been started for a `command`. A newline on the `channel` asks it for a job; a line comes back
    once the job has ended well and nothing of it is left. Any other byte asks for that line alone. At the end of the
    channel it ends.
    """

    command: Command
    process: subprocess.Popen[bytes]
    channel: socket.socket
    name: Process
    drivers: Process | None = None
    """The process that it keeps for its next job, once it has told it."""

    @classmethod
    def start(cls, command: Command) -> Jvm:
        """Start a JVM. Must be called on the main thread: it dies with the thread that forked it."""
        own_end, child_end = socket.socketpair()
        with child_end:
            try:
                process = _spawn(command, child_end)
            except BaseException:
                own_end.close()
                raise
        return cls(command, process, own_end, process_of(process.pid))

    def ask(self) -> None:
        """Ask for the job that the sandbox's files describe."""
        with suppress(OSError):  # it has ended; whoever waits for it learns that from the process
            self.channel.sendall(b"\n")

    def gets_ready(self, timeout_s: float) -> bool:
        """Wait until it could begin a job at once. After a False it must end: its late report would be taken for that
        of a job.
        """
        with suppress(OSError):
            self.channel.sendall(_IS_READY)
        select.select([self.channel], [], [], timeout_s)
        return self.has_reported()

    def has_reported(self) -> bool:
        """Tell whether it has reported that it waits for a job, and that nothing is left of the one before. The report
        names the process that it keeps.
        """
        try:
            self.drivers = process_of(int(self.channel.recv(_LINE_MAX, socket.MSG_DONTWAIT)))
        except (OSError, ValueError):
            return False
        return True

    @property
    def processes(self) -> frozenset[Process]:
        """The processes that wait for its next job."""
        return frozenset({self.name} if self.drivers is None else {self.name, self.drivers})

    def is_alive(self) -> bool:
        """Tell whether it and the process that it keeps live, and it has nothing to say."""
        if self.process.poll() is not None or select.select([self.channel], [], [], 0)[0]:
            return False
        return self.drivers is None or is_living(self.drivers)

    def end(self) -> None:
        """Kill the JVM, and with it the process that it keeps; let go of both."""
        below = descendants(of=self.name.pid)
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):  # Popen has to reap it
            self.process.wait(_END_TIMEOUT_S)
        end_these(below, _END_TIMEOUT_S)
        self.channel.close()
        self.stdout.close()

    @property
    def stdout(self) -> BinaryIO:
        """Its output, a pipe; errors are in it, too."""
        if self.process.stdout is None:
            raise AssertionError  # for the type checker
        return self.process.stdout  # type: ignore[return-value]


class Output(io.RawIOBase):
    """The output of a JVM up to its end, or to the end of a job: once `job_has_ended` was called, all that is there
    is read, and then the stream ends.
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
        """Read what is there, for nobody: it is of no job."""
        while select.select([self._descriptor], [], [], 0)[0] and os.read(self._descriptor, _CHUNK):
            pass

    def job_has_ended(self) -> None:
        """Let the stream end at what has been written by now."""
        os.eventfd_write(self._ended, 1)

    def close(self) -> None:
        if not self.closed:
            os.close(self._ended)
        super().close()


def _spawn(command: Command, channel: socket.socket) -> subprocess.Popen[bytes]:
    """Start the JVM in a session of its own (a terminal's or emulator's signals to our group are not for it)."""
    parent = os.getpid()

    def before_exec() -> None:
        die_with_parent()
        if os.getppid() != parent:
            os._exit(127)  # the parent died before the line above
        # A POSIX message queue outlives its job, and only its name would show it: a job makes none.
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, (0, 0))
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
        stdin=channel.fileno(),  # its end tells the JVM that we are gone
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=before_exec,  # noqa: PLW1509 - the calls in it are plain system calls; libc is loaded already
    )
