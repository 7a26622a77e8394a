"""A Lambda MicroVM on this machine: the image's program, its hooks called as Lambda does, and the API that ends it.

There is no snapshot: what a copy of a memory has in common with another one, `tests/contract/test_copies.py` shows.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections import deque
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import unquote

from handler.microvm.hooks import PATH
from scripts.emulator.rie import EmulatorError, free_port
from scripts.process_owner import end
from scripts.provision.place import ROOT
from soal.home import Home

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_API: Final = "/2025-09-09/microvms/"
_POLL_S: Final = 0.1
_HOOK_TIMEOUT_S: Final = 60.0
_END_TIMEOUT_S: Final = 30.0
_TAIL_LINES: Final = 300


class Hooks(ABC):
    """The hooks of a MicroVM's program, called as Lambda does."""

    @abstractmethod
    def connection(self) -> http.client.HTTPConnection:
        """Return a new connection to the program. This, or its use, raises `OSError` if nobody answers."""

    @abstractmethod
    def tail(self) -> str:
        """Return the end of the program's log."""

    def build(self, *, within_s: float) -> None:
        """Call `ready` and then `validate` until they answer 200. Raises `EmulatorError` as a build fails."""
        for hook in ("ready", "validate"):
            self.until_ok(hook, within_s)

    def until_ok(self, hook: str, within_s: float) -> None:
        """Call a hook until it answers 200. Raises `EmulatorError` for another answer than *not yet*, or after the
        time.
        """
        until_s = time.monotonic() + within_s
        while time.monotonic() < until_s:
            with contextlib.suppress(OSError):  # the program does not listen yet
                status, text = self.call(hook)
                if status == HTTPStatus.OK:
                    return
                if status != HTTPStatus.SERVICE_UNAVAILABLE:
                    raise EmulatorError(f"the hook {hook} answered {status}: {text}\n{self.tail()}")
            time.sleep(_POLL_S)
        raise EmulatorError(f"the hook {hook} was not ready in {within_s} s\n{self.tail()}")

    def run(self, payload: str, microvm_id: str = "") -> str:
        """Start the MicroVM's job; return the MicroVM's id."""
        microvm_id = microvm_id or f"mvm-{uuid.uuid4()}"
        status, text = self.call("run", {"microvmId": microvm_id, "runHookPayload": payload})
        if status != HTTPStatus.OK:
            raise EmulatorError(f"the hook run answered {status}: {text}\n{self.tail()}")
        return microvm_id

    def call(self, hook: str, body: object = None) -> tuple[int, str]:
        """Call a hook; return status and text. Raises `OSError` if nobody answers in the time of a hook."""
        with contextlib.closing(self.connection()) as connection:
            data = None if body is None else json.dumps(body).encode()
            connection.request("POST", f"{PATH}{hook}", body=data, headers={"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()


class MicrovmEmulator(Hooks):
    """A context manager: `with MicrovmEmulator(variables) as machine: machine.build(within_s=60); machine.run(event)`.

    The program sees `environment`. `words` are its arguments. All its processes end with the block.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        timeout_s: int = 900,
        memory_mb: int = 3008,
        words: tuple[str, ...] = (),
        python: Path | None = None,
    ) -> None:
        self._api = ThreadingHTTPServer(("127.0.0.1", 0), _answering(self))
        self._environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            **environment,
            "PYTHONPATH": str(ROOT),
            "SOAL_TIMEOUT_S": str(timeout_s),
            "SOAL_MEMORY_MB": str(memory_mb),
            "AWS_ENDPOINT_URL_LAMBDA_MICROVMS": f"http://127.0.0.1:{self._api.server_port}",
        }
        self._memory_mb = memory_mb
        self._words = words
        self._python = python or Home.of().python
        self._port = 0
        self._stack = contextlib.ExitStack()
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self.terminated: list[str] = []
        """The ids of the MicroVMs that the program has asked Lambda to end."""

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            thread = threading.Thread(target=self._api.serve_forever, daemon=True)
            thread.start()
            stack.callback(self._api.server_close)
            stack.callback(self._api.shutdown)
            self._port = free_port("0.0.0.0")  # noqa: S104 - where the program listens
            owner = (sys.executable, "-P", "-m", "scripts.process_owner", "--memory-mb", str(self._memory_mb + 512))
            process = subprocess.Popen(
                [*owner, *self._program()],
                env=self._environment,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
            reader.start()
            stack.callback(reader.join, _END_TIMEOUT_S)
            stack.callback(end, process, _END_TIMEOUT_S)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def tail(self) -> str:
        return "\n".join(tuple(self._tail))

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=_HOOK_TIMEOUT_S)

    def _program(self) -> tuple[str, ...]:
        # The packages of the image have no S3; the image of this form has one in a folder of its own.
        options = ("--port", str(self._port), "--s3-python", sys.executable)
        return (str(self._python), "-P", "-m", "handler.microvm", *options, *self._words)

    def _read(self, stream: Any) -> None:  # noqa: ANN401 - the stdout of a Popen
        for line in stream:
            self._tail.append(line.decode("utf-8", "replace").rstrip("\n"))
        stream.close()


def _answering(machine: MicrovmEmulator) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_DELETE(self) -> None:
            machine.terminated.append(unquote(self.path.removeprefix(_API)))
            self.send_response(HTTPStatus.OK)
            self.send_header("x-amzn-RequestId", str(uuid.uuid4()))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:  # noqa: ANN401 - its signature
            """Log nothing."""

    return Handler
