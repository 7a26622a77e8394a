"""Lambda's durable service on this machine: AWS's emulation, and a function under the real runtime interface emulator
(RIE).

Between the two an endpoint of Lambda's API reports a function that was killed or raised as failed, which the RIE does
not, and starts an execution for an invocation. So boto3 works as in an account; the function is called `function`.
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
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import quote

import boto3
from botocore.config import Config

from safewriter.objects.client import client_of
from scripts.emulator.rie import EmulatorError, LambdaEmulator, free_port
from scripts.provision.place import ROOT
from soal.local.names import CREDENTIALS, REGION
from soal.testing.s3.programs_only import ForPrograms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HANDLER: Final = "handler.functions.durable.lambda_handler"
_MARKER: Final = "X-Dex-Handler-Invoke"
"""The service sets this header when it invokes the handler; without it an invocation starts an execution."""
_KEY, _SECRET = CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"]
_ACCOUNT: Final = "123456789012"
_START_TIMEOUT_S: Final = 60.0
_END_TIMEOUT_S: Final = 20.0
_POLL_S: Final = 0.2
_HEADROOM_S: Final = 120
_RETENTION_DAYS: Final = 1


class DurableEmulator:
    """A context manager: `with DurableEmulator(variables, timeout_s=60) as service: service.client().invoke(…)`.

    Takes the arguments of `LambdaEmulator`, and `execution_s`, the timeout of a whole execution.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        timeout_s: int = 900,
        execution_s: int = 86_400,
        handler: str = HANDLER,
        **others: Any,  # noqa: ANN401 - of LambdaEmulator
    ) -> None:
        self._timeout_s, self._execution_s = timeout_s, execution_s
        self._port, self._service_port = free_port(), free_port()
        self._stack = contextlib.ExitStack()
        # By the endpoint, since the service itself gives no request ids.
        self.function = LambdaEmulator(
            {
                **CREDENTIALS,
                **environment,
                "AWS_ENDPOINT_URL_LAMBDA": self.endpoint,
            },
            timeout_s=timeout_s,
            handler=handler,
            **others,
        )

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._server = stack.enter_context(_Endpoint(("127.0.0.1", self._port), _Handler))
            self._server.service = self
            thread = threading.Thread(target=self._server.serve_forever, daemon=True)
            thread.start()
            stack.callback(thread.join, _END_TIMEOUT_S)
            stack.callback(self._server.shutdown)
            stack.enter_context(self._service())
            stack.enter_context(self.function)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def endpoint(self) -> str:
        """The endpoint of Lambda's API."""
        return f"http://127.0.0.1:{self._port}"

    def client(self) -> Any:  # noqa: ANN401 - a boto3 client
        """Return a client of Lambda's API."""
        config = Config(read_timeout=self._execution_s, retries={"total_max_attempts": 1})
        session = boto3.session.Session(aws_access_key_id=_KEY, aws_secret_access_key=_SECRET, region_name=REGION)
        return client_of("lambda", config, endpoint=self.endpoint, session=session)

    @contextlib.contextmanager
    def _service(self) -> Iterator[None]:
        command = (
            *(sys.executable, "-P", "-m", "scripts.process_owner", sys.executable, "-P"),
            *("-m", "aws_durable_execution_sdk_python_testing.cli", "start-server"),
            *("--host", "127.0.0.1", "--port", str(self._service_port), "--log-level", "ERROR"),
            *("--lambda-endpoint", self.endpoint, "--local-runner-region", REGION),
            *("--invocation-timeout", str(self._timeout_s + _HEADROOM_S)),
        )
        environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/local/bin:/usr/bin:/bin", **CREDENTIALS}
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        )
        try:
            self._wait_for_service(process)
            yield
        finally:
            if process.stdin is not None:
                process.stdin.close()
            process.wait(_END_TIMEOUT_S)

    def _wait_for_service(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < until and process.poll() is None:
            with contextlib.suppress(OSError):
                if self.request("GET", "/health")[0] == http.client.OK:
                    return
            time.sleep(_POLL_S)
        raise EmulatorError("the emulation of the durable service did not start")

    def deliver(self, event: object) -> tuple[str | None, bytes]:
        """Deliver an event to the handler; return Lambda's function error or None, and the payload."""
        try:
            answer = self.function.invoke(event)
        except EmulatorError as error:
            return "Unhandled", json.dumps({"errorType": "Sandbox.Gone", "errorMessage": str(error)}).encode()
        failed = answer.timed_out or answer.error is not None
        payload = answer.payload if answer.payload is not None else {"errorType": "Runtime.ExitError"}
        return ("Unhandled" if failed or answer.payload is None else None), json.dumps(payload).encode()

    def start(self, event: str, name: str | None = None) -> str:
        """Start an execution with an event in JSON; return its ARN. Raises `EmulatorError` if the service refuses."""
        request = {
            "AccountId": _ACCOUNT,
            "FunctionName": "function",
            "FunctionQualifier": "$LATEST",
            "ExecutionName": name or uuid.uuid4().hex,
            "ExecutionTimeoutSeconds": self._execution_s,
            "ExecutionRetentionPeriodDays": _RETENTION_DAYS,
            "Input": event,
        }
        status, body = self.request("POST", "/start-durable-execution", json.dumps(request).encode())
        if status >= http.client.BAD_REQUEST:
            raise EmulatorError(f"the durable service says {status}: {body.decode(errors='replace')}")
        return str(json.loads(body)["ExecutionArn"])

    def end_of(self, arn: str) -> tuple[str | None, bytes]:
        """Wait for the end of an execution, like a synchronous invocation but without its limit of 15 minutes."""
        path = f"/2025-12-01/durable-executions/{quote(arn, safe='')}"
        until = time.monotonic() + self._execution_s
        while (reply := json.loads(self.request("GET", path)[1]))["Status"] == "RUNNING" and time.monotonic() < until:
            time.sleep(_POLL_S)
        if reply["Status"] == "SUCCEEDED":
            return None, str(reply.get("Result") or "null").encode()
        error = reply.get("Error") or {}
        fault = {
            "errorType": error.get("ErrorType") or reply["Status"],
            "errorMessage": error.get("ErrorMessage") or "",
        }
        return "Unhandled", json.dumps(fault).encode()

    def request(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Ask the service; return the status and the body of its answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self._service_port, timeout=_START_TIMEOUT_S)
        try:
            connection.request(method, path, body=body, headers={"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


class _Endpoint(ThreadingHTTPServer):
    """Serves Lambda's API."""

    daemon_threads = True
    service: DurableEmulator


class _Handler(ForPrograms):
    server: _Endpoint

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_POST(self) -> None:  # noqa: N802 - http.server calls it so
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.path.endswith("/invocations"):
            self._pass_on("POST", body)
        elif self.headers.get(_MARKER):
            error, payload = self.server.service.deliver(json.loads(body))
            self._answer(http.client.OK, payload, **_function_error(error))
        else:
            arn = self.server.service.start(body.decode() or "{}", self.headers.get("X-Amz-Durable-Execution-Name"))
            headers = {"X-Amz-Durable-Execution-Arn": arn}
            if self.headers.get("X-Amz-Invocation-Type") == "Event":
                self._answer(http.client.ACCEPTED, b"", **headers)
                return
            error, payload = self.server.service.end_of(arn)
            self._answer(http.client.OK, payload, **headers, **_function_error(error))

    def do_GET(self) -> None:  # noqa: N802 - as above
        if self.path.endswith("/configuration"):
            self._answer(
                http.client.OK,
                json.dumps({"FunctionName": "function", "DurableConfig": {"ExecutionTimeout": 1}}).encode(),
            )
        else:
            self._pass_on("GET", b"")

    def _pass_on(self, method: str, body: bytes) -> None:
        self._answer(*self.server.service.request(method, self.path, body))

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("X-Amzn-RequestId", str(uuid.uuid4()))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _function_error(error: str | None) -> dict[str, str]:
    return {} if error is None else {"X-Amz-Function-Error": error}
