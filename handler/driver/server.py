"""Forks a driver for each job: PySpark is imported once, and a job's Python starts with it in a few milliseconds.

`python server.py`, started by the JVM (io.soal.host.PythonDrivers). A request on the standard input has a
length (4 bytes) and words with zero bytes between: the port and the secret of the gateway to Java, the script, its
arguments. The answer goes to the standard error, which is the JVM's: the driver's exit code (4 bytes). A
request without words is answered with 0 once this process can fork.
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
    """Serve until a request comes, in the process that is forked for it; then run its job there."""
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
    """Answer requests by drivers; return, in the driver, its request."""
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
        driver = os.fork()
        if driver == 0:
            break
        _, status = os.waitpid(driver, 0)
        fcntl.fcntl(_OUT, fcntl.F_SETFL, flags)  # Java prints, too
        code = os.waitstatus_to_exitcode(status)
        os.write(answers, _NUMBER.pack(code if code >= 0 else _SIGNALLED - code))
        _begin_guard(bootstrap)  # while Java and the handler end the job
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.close(answers)
    with Path(os.devnull).open("rb") as null:
        os.dup2(null.fileno(), _IN)
    # Java writes to the same pipe: a line that goes there at once is not torn apart.
    sys.stdout.reconfigure(line_buffering=True, write_through=False)  # type: ignore[union-attr]
    return words


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
    # Python has put the folder of this file there, but `handler` is found in the folder above.
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    from handler.driver import bootstrap

    main(bootstrap)
