"""The emulators on loopback answer programs, and refuse every request that a web page makes a browser send."""

from __future__ import annotations

import http.client
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from unittest.mock import MagicMock

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from scripts.emulator import durable as service
from scripts.emulator.java import java
from scripts.emulator.rest_catalog import RestCatalog
from scripts.emulator.s3_backends import BACKENDS, opened_backend
from scripts.emulator.seaweedfs import SeaweedFS
from soal.testing.s3 import EmbeddedS3

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.slow

PAGES: Final = (
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Host": "evil.example:{port}"},
    {"Host": "127.0.0.1.evil.example:{port}"},
    {"Host": "evil.example@127.0.0.2:{port}"},
    {"Host": ""},
)
FORM: Final = (
    b'--x\r\nContent-Disposition: form-data; name="key"\r\n\r\njobs/evil.py\r\n'
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nevil\r\n--x--\r\n'
)
FORM_TYPE: Final = "multipart/form-data; boundary=x"
NAMESPACE: Final = b'{"namespace":["evil"],"properties":{}}'


def sent(
    port: int, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> tuple[int, http.client.HTTPMessage]:
    """Return the response's status and headers."""
    told = {name: value.format(port=port) for name, value in (headers or {}).items()}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, told)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers
    finally:
        connection.close()


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


@pytest.fixture(scope="module", params=BACKENDS)
def s3(request: pytest.FixtureRequest) -> Iterator[EmbeddedS3]:
    with opened_backend(request.param) as backend, EmbeddedS3(buckets=["scripts"], backend=backend) as running:
        yield running


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_what_a_browser_sends_for_a_page_reaches_no_object(s3: EmbeddedS3, page: dict[str, str]) -> None:
    """A page's form, or a page whose name resolves to this machine, gets 403 and reads and writes nothing."""
    s3.reset()
    for method, path, body, kind in (
        ("POST", "/scripts", FORM, FORM_TYPE),
        ("POST", "/moto-api/reset", b"", "text/plain"),
        ("PUT", "/scripts/jobs/evil.py", b"evil", "text/plain"),
        ("GET", "/scripts", b"", "text/plain"),
        ("OPTIONS", "/scripts", b"", "text/plain"),
    ):
        status, headers = sent(s3.port, method, path, body, {"Content-Type": kind, **page})
        assert status == 403, (method, path)
        assert "Access-Control-Allow-Origin" not in headers
    assert s3.keys("scripts") == ()
    assert s3.trace() == ()


@pytest.mark.parametrize("program", [{}, {"Host": "localhost:{port}"}, {"Host": "[::1]"}, {"Sec-Fetch-Site": "none"}])
def test_a_program_is_answered(program: dict[str, str]) -> None:
    """A program is answered under every name of loopback, and no response lets pages read it."""
    with EmbeddedS3(buckets=["scripts"]) as s3:
        status, headers = sent(s3.port, "GET", "/scripts", headers=program)
        assert status == 200
        assert "Access-Control-Allow-Origin" not in headers


@contextmanager
def catalog_behind(folder: Path) -> Iterator[tuple[RestCatalog, EmbeddedS3, int]]:
    with EmbeddedS3(buckets=["lake"]) as s3, RestCatalog(s3, folder, "s3a://lake/w") as catalog:
        yield catalog, s3, port_of(s3.wire._catalogs["rest-catalog"][0])


def test_what_a_browser_sends_for_a_page_reaches_no_catalog(tmp_path: Path) -> None:
    """Requests from pages fail through the S3 and at the catalog's port, which answers only to its name."""
    with catalog_behind(tmp_path) as (_, s3, port):
        for page in PAGES:
            assert sent(s3.port, "POST", "/rest-catalog/v1/namespaces", NAMESPACE, page)[0] == 403
            assert sent(port, "POST", "/v1/namespaces", NAMESPACE, page)[0] in (400, 404)
        assert sent(port, "GET", "/v1/namespaces/evil")[0] == 404
        assert sent(s3.port, "GET", "/rest-catalog/v1/namespaces/evil")[0] == 404
        assert sent(s3.port, "POST", "/rest-catalog/v1/namespaces", NAMESPACE)[0] == 200
        assert sent(s3.port, "GET", "/rest-catalog/v1/namespaces/evil")[0] == 200
        assert sent(port, "GET", "/v1/namespaces/evil")[0] == 404


def test_what_a_browser_sends_for_a_page_reaches_nothing_in_seaweedfs() -> None:
    """None of its own ports takes or tells anything without a signature, a login or a token."""
    with SeaweedFS() as backend, EmbeddedS3(buckets=["scripts"], backend=backend) as s3:
        backend.catalog(s3, "warehouse")
        ports = backend._ports
        for name, path in (
            ("s3.port", "/scripts/evil"),
            ("filer.port", "/buckets/scripts/evil"),
            ("volume.port", "/1,01637037d6"),
            ("master.port", "/col/delete?collection=scripts"),
            ("s3.port.iceberg", "/v1/warehouse/namespaces"),
        ):
            for method in ("GET", "POST", "PUT"):
                status, _ = sent(ports[name], method, path, NAMESPACE)
                assert status in (400, 401, 403, 404, 405), (name, method)
        assert s3.keys("scripts") == ()


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_what_a_browser_sends_for_a_page_starts_no_durable_execution(page: dict[str, str]) -> None:
    """The endpoint of Lambda's API refuses a page's request before it reads the event."""
    emulator = MagicMock()
    emulator.start.return_value = "arn"
    with service._Endpoint(("127.0.0.1", 0), service._Handler) as server:
        server.service = emulator
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            path = "/2015-03-31/functions/function/invocations"
            status, _ = sent(server.server_port, "POST", path, b"{}", {"X-Amz-Invocation-Type": "Event", **page})
            assert (status, emulator.start.called) == (403, False)
            status, _ = sent(server.server_port, "POST", path, b"{}", {"X-Amz-Invocation-Type": "Event"})
            assert (status, emulator.start.call_args.args) == (202, ("{}", None))
        finally:
            server.shutdown()
            thread.join()


def test_nobody_else_commands_a_java_process() -> None:
    """A command without the token gets no answer."""
    with java(()) as jvm:
        stranger = JavaGateway(gateway_parameters=GatewayParameters(port=jvm._gateway_client.port))
        with pytest.raises(Py4JError):
            stranger.jvm.java.lang.System.getProperty("java.version")
        assert jvm.java.lang.System.getProperty("java.version")
