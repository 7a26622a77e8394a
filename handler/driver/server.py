"""Fork a driver for each job: this process imports PySpark once, and a job's Python starts in a few milliseconds.

The JVM (io.soal.host.PythonDrivers) starts `python server.py`. A request on standard input is a length (4 bytes) and
words separated by zero bytes: the port and the secret of the gateway to the JVM, the script, its arguments. The answer
on standard error, a pipe to the JVM, is the driver's exit code (4 bytes). A request without words is answered with 0
once this process can fork.

Only this process sees the driver's end: so before it answers, it notes the end in the journal, by which the handler
knows whether the script had ended by itself when it told the job to stop.
"""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import ModuleType

_NUMBER: Final = struct.Struct(">i")
_SIGNALLED: Final = 128
_IN: Final = 0
_OUT: Final = 1
_ERRORS: Final = 2


def main(bootstrap: ModuleType) -> None:
    """Serve requests, each in a fork of this process; return only in a fork, when its job has run."""
    answers = os.dup(_ERRORS)
    os.dup2(_OUT, _ERRORS)
    bootstrap.begin()
    gc.collect()
    gc.freeze()  # the collector would write to pages that all drivers share
    words = _next_job(answers, bootstrap)
    os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = words[:2]
    sys.argv[1:] = words[2:]
    bootstrap.main(sys.modules["__main__"])


def _next_job(answers: int, bootstrap: ModuleType) -> list[str]:
    """Fork a driver for each request and answer with its exit code; in the driver, return the request."""
    flags = fcntl.fcntl(_OUT, fcntl.F_GETFL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the driver dies with this process, and may have to settle a write
    while True:
        size = _NUMBER.unpack(_read(_NUMBER.size))[0]
        if size == 0:
            _begin_guard(bootstrap)
            os.write(answers, _NUMBER.pack(0))
            continue
        words = _read(size).decode().split("\0")
        # Java and all jobs have the same pipe: without O_NONBLOCK, which asyncio sets, no line of theirs is lost.
        fcntl.fcntl(_OUT, fcntl.F_SETFL, flags)  # also after a process that a job had left
        journal = _open_journal()
        driver = os.fork()
        if driver == 0:
            if journal is not None:
                os.close(journal)
            break
        _, status = os.waitpid(driver, 0)
        fcntl.fcntl(_OUT, fcntl.F_SETFL, flags)  # Java prints, too
        code = os.waitstatus_to_exitcode(status)
        _note_end(journal, code)
        os.write(answers, _NUMBER.pack(code if code >= 0 else _SIGNALLED - code))
        _begin_guard(bootstrap)  # while the JVM and the handler end the job
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.close(answers)
    with Path(os.devnull).open("rb") as null:
        os.dup2(null.fileno(), _IN)
    # The JVM writes to the same pipe: flush whole lines, so that they do not mix.
    sys.stdout.reconfigure(line_buffering=True, write_through=False)  # type: ignore[union-attr]
    return words


def _open_journal() -> int | None:
    """Open the journal before the job, which may delete it; the supervisor reads on."""
    with suppress(KeyError, OSError):
        return os.open(os.environ["SOAL_JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    return None


def _note_end(handle: int | None, code: int) -> None:
    from safewriter.record import journal

    if handle is None:
        return
    with suppress(OSError):  # on a full disk the handler has only the JVM's word
        journal.append(f"/proc/self/fd/{handle}", "driver_ended", exitCode=code)
    os.close(handle)


def _begin_guard(bootstrap: ModuleType) -> None:
    with suppress(Exception):  # a job that needs it meets the error itself
        bootstrap.begin_guard()
    gc.freeze()


def _read(size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = os.read(_IN, size - len(data))
        if not chunk:
            os._exit(0)  # Java has ended
        data += chunk
    return data


if __name__ == "__main__":
    # Python puts the folder of this file there, but `handler` is two folders up.
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    from handler.driver import bootstrap

    main(bootstrap)
