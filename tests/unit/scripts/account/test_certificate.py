from __future__ import annotations

import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from scripts.account.certificate import Certificate

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS = "172.17.0.1"


def greet(server: Certificate, client: ssl.SSLContext, address: str) -> str | None:
    """Return the version of TLS on which both agree."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.pem, server.key)
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with context.wrap_socket(theirs, server_side=True) as wrapped:
            wrapped.recv(1)

    with ThreadPoolExecutor(1) as pool, ours, theirs:
        served = pool.submit(serve)
        try:
            with client.wrap_socket(ours, server_hostname=address) as wrapped:
                return wrapped.version()
        finally:
            ours.close()
            served.exception(10)


def test_who_trusts_the_certificate_reaches_the_server(tmp_path: Path) -> None:
    """At its address, and at no other."""
    made = Certificate(tmp_path)
    made.make(ADDRESS)
    trusting = ssl.create_default_context(cafile=str(made.pem))

    assert greet(made, trusting, ADDRESS) == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        greet(made, trusting, "172.17.0.2")


def test_nobody_else_trusts_it(tmp_path: Path) -> None:
    """A browser on the machine does not, so no web page reaches the account. The key is its owner's."""
    made = Certificate(tmp_path)
    made.make(ADDRESS)

    with pytest.raises(ssl.SSLCertVerificationError, match="self-signed"):
        greet(made, ssl.create_default_context(), ADDRESS)
    assert made.key.stat().st_mode & 0o077 == 0


def test_a_container_gets_the_certificate_and_no_key(tmp_path: Path) -> None:
    """Python reads the file itself, Java a store of it."""
    options = Certificate(tmp_path).container_options()

    assert f"{tmp_path}/account.pem:/run/account.pem:ro" in options
    assert "AWS_CA_BUNDLE=/run/account.pem" in options
    assert "trustStore=/run/account.p12 " in next(one for one in options if one.startswith("JAVA_TOOL_OPTIONS"))
    assert "account.key" not in " ".join(options)
