"""A Lambda function on this machine: a handler under the real runtime interface emulator (RIE).

This module hides where the RIE differs from Lambda: it answers 200 for errors and timeouts, a second concurrent
invocation crashes it, processes that leave its process group survive its kill, and it limits no memory.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Self

import psutil

from scripts.provision.place import ROOT
from soal.console.problem import Failure
from soal.home import Home
from soal.remote.answer import answer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from soal.remote.answer import Answer

_PATH: Final = "/2015-03-31/functions/function/invocations"
_START_TRIES: Final = 3
_START_TIMEOUT_S: Final = 30.0
_END_TIMEOUT_S: Final = 20.0
# Lambda allows 10 s for importing the handler, before the timeout starts; a busy laptop needs more.
_INIT_TIMEOUT_S: Final = 60.0
_TAIL_LINES: Final = 200


class EmulatorError(Failure):
    """The emulator did not start or did not answer. The message contains its last lines."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, todo="check the set-up with: soal doctor")


class LambdaEmulator:
    """A context manager: `with LambdaEmulator(variables, timeout_s=60) as function: function.invoke(event)`.

    The function sees `environment` and Lambda's variables, none of ours. `python` (default: the Python of the image's
    variant slim) imports `handler`, `module.function`, from `directory`. A thread calls `on_line` with each line that
    the function or the emulator prints. All processes end with the block, or with this process, even if it is killed.
    They hold at most `memory_mb` MiB: above that, as on Lambda, one of them is killed.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        timeout_s: int = 900,
        memory_mb: int = 3008,
        handler: str = "handler.app.lambda_handler",
        directory: Path = ROOT,
        binary: Path | None = None,
        python: Path | None = None,
        on_line: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._environment = {
            "SOAL_TIMEOUT_S": str(timeout_s),
            **environment,
            "PYTHONUNBUFFERED": "1",
            "AWS_LAMBDA_FUNCTION_TIMEOUT": str(timeout_s),
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(memory_mb),
        }
        self._timeout_s = timeout_s
        self._memory_mb = memory_mb
        self._handler = handler
        self._directory = directory
        home = Home.of()
        self._binary = binary or home.rie
        self._python = python or home.python
        self._on_line = on_line
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._one_at_a_time = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._port = 0

    def __enter__(self) -> Self:
        if not self._binary.is_file():
            raise EmulatorError(f"there is no Lambda emulator at {self._binary}; run scripts/setup")
        if not self._python.is_file():
            raise EmulatorError(f"there are no packages of the image at {self._python}; run scripts/setup")
        for _ in range(_START_TRIES):  # another process may take the port before the emulator does
            self._start()
            if self._listens():
                return self
            self._stop()
        raise EmulatorError(f"the Lambda emulator did not start\n{self.tail()}")

    def __exit__(self, *_: object) -> None:
        self._stop()

    def tail(self) -> str:
        """Return the last lines of the log."""
        return "\n".join(tuple(self._tail))

    def processes(self) -> tuple[psutil.Process, ...]:
        """Return the running processes: the emulator and its descendants."""
        if self._process is None:
            return ()
        try:
            return tuple(psutil.Process(self._process.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return ()

    def cpu_s(self) -> float:
        """Return the CPU seconds of the running processes and of their ended children."""
        return sum(cpu_s(process) for process in self.processes())

    @property
    def endpoint(self) -> str:
        """The endpoint of Lambda's API for other clients; it calls the function `function`."""
        return f"http://127.0.0.1:{self._port}"

    def invoke(self, event: object) -> Answer:
        """Deliver one event and wait for the answer. A second caller waits for its turn.

        Raises `EmulatorError` if the emulator has died, or has not answered long after its own timeout.
        """
        body = json.dumps(event).encode()
        with self._one_at_a_time:
            begin_s = time.monotonic()
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=self._timeout_s + _INIT_TIMEOUT_S)
            try:
                connection.request("POST", _PATH, body=body, headers={"Content-Type": "application/json"})
                text = connection.getresponse().read().decode("utf-8", "replace")
            except (OSError, http.client.HTTPException) as error:
                raise EmulatorError(f"the Lambda emulator gave no answer: {error!r}\n{self.tail()}") from error
            finally:
                connection.close()
            return answer_of(text, round((time.monotonic() - begin_s) * 1000))

    def _start(self) -> None:
        self._port, runtime_port = free_port(), free_port()
        addresses = (
            *("--runtime-interface-emulator-address", f"127.0.0.1:{self._port}"),
            *("--runtime-api-address", f"127.0.0.1:{runtime_port}"),
        )
        self._process = subprocess.Popen(
            self._command(addresses),
            env=self._variables(),
            cwd=self._directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C must reach only this process, which stops the emulator
        )
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def _command(self, addresses: tuple[str, ...]) -> list[str]:
        """Return the command that runs the emulator; all its processes end when its standard input does."""
        owner = (sys.executable, "-P", "-m", "scripts.process_owner", "--memory-mb", str(self._memory_mb))
        return [*owner, str(self._binary), *addresses, str(self._python), "-m", "awslambdaric", self._handler]

    def _variables(self) -> dict[str, str]:
        """Return the command's environment."""
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            **self._environment,
            "PYTHONPATH": os.pathsep.join(dict.fromkeys((str(self._directory), str(ROOT)))),
        }

    def _read(self, stream: Any) -> None:  # noqa: ANN401 - the stdout of a Popen
        for line in stream:
            text = line.decode("utf-8", "replace").rstrip("\n")
            self._tail.append(text)
            self._on_line(text)

    def _listens(self) -> bool:
        """Wait until one of our processes listens on the port. Another program there must not get our events."""
        until = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < until and self._process is not None and self._process.poll() is None:
            for process in self.processes():
                with contextlib.suppress(psutil.Error):
                    for connection in process.net_connections("tcp4"):
                        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == self._port:
                            return True
            time.sleep(0.01)
        return False

    def _stop(self) -> None:
        """Let the process owner kill everything; if it is gone or stuck, kill the processes here."""
        process, self._process = self._process, None
        if process is None or process.stdin is None or process.stdout is None:
            return
        process.stdin.close()
        try:
            process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            below = psutil.Process(process.pid).children(recursive=True)
            for child in below:
                with contextlib.suppress(psutil.Error):
                    child.send_signal(signal.SIGKILL)
            process.kill()
            process.wait(_END_TIMEOUT_S)
        if self._reader is not None:
            self._reader.join(_END_TIMEOUT_S)
        process.stdout.close()


def cpu_s(process: psutil.Process) -> float:
    """Return the CPU seconds of a process and of its ended children; 0 if it is gone."""
    with contextlib.suppress(psutil.Error):
        times = process.cpu_times()
        return float(times.user + times.system + times.children_user + times.children_system)
    return 0.0


def free_port(address: str = "127.0.0.1") -> int:
    """Return a port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])
