"""One HTTP exchange with the emulator: caller, condition, body, status, and errors in the form of S3."""

from __future__ import annotations

import io
from typing import Any

import pytest

from soal.testing.s3.exchange import ConnectionDropped, Reply, Request


def request(body: bytes = b"", **headers: str) -> Request:
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "PUT",
        "PATH_INFO": "/lake/t/a.parquet",
        "wsgi.input": io.BytesIO(body),
    }
    return Request.of({**environ, **headers}, lambda _: Reply(200, (), b""))


def test_a_request_knows_who_asks_and_under_which_condition() -> None:
    """The access key comes from the signature, the condition from the headers."""
    asked = request(
        HTTP_AUTHORIZATION="AWS4-HMAC-SHA256 Credential=AKIA1/20261120/us-east-1/s3/aws4_request, Signature=x",
        HTTP_IF_MATCH='"e"',
    )
    assert (asked.access_key, asked.condition) == ("AKIA1", 'If-Match: "e"')
    assert request().access_key is None


def test_a_body_that_is_cut_off_is_no_body() -> None:
    """If the client hangs up in the middle of the body, nothing is applied."""
    cut = request(b"123", CONTENT_LENGTH="5")
    with pytest.raises(ConnectionDropped):
        cut.apply()
    assert cut.applied is None


def test_a_body_without_a_length_is_read_to_its_end() -> None:
    """A chunked body, which has no announced length, is read to its end."""
    assert request(b"12345").body() == b"12345"


def test_applying_remembers_what_s3_said() -> None:
    """The exchange records S3's status besides the client's."""
    asked = request(b"1", CONTENT_LENGTH="1")
    asked.apply()
    assert (asked.applied, asked.body_bytes) == (200, 1)


@pytest.mark.parametrize(("status", "line"), [(404, "404 Not Found"), (599, "599 -")])
def test_a_status_has_its_reason(status: int, line: str) -> None:
    """A status that HTTP does not define gets a status line, too."""
    assert Reply(status, (), b"").line == line


def test_an_error_is_told_as_s3_does() -> None:
    """The body of an error is XML with the code that clients read."""
    assert b"<Code>SlowDown</Code>" in Reply.error(503, "why").body
