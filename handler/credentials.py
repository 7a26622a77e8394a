"""Serve the role's credentials to the JVM, whose environment does not hold them.

Java libraries expand environment variables in settings, paths and SQL. So the JVM of a job has an environment without
secrets, and requests credentials from this process as AWS's SDKs do in a container:
https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
"""

from __future__ import annotations

import functools
import hmac
import json
import secrets
import threading
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

from botocore.session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["credentials_for_java"]

_PATH: Final = "/role"
_ASK_AGAIN_AFTER: Final = timedelta(hours=1)
"""The expiry to report for credentials from variables, which have none; Lambda replaces them with the sandbox."""


@functools.cache
def credentials_for_java() -> Mapping[str, str]:
    """Serve the credentials on the loopback interface until this process ends. Return the variables that lead an AWS
    SDK to the server: its address, and the token that it requires.
    """
    token = secrets.token_urlsafe()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _answering(token))
    threading.Thread(target=server.serve_forever, name="soal-credentials", daemon=True).start()
    return {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{server.server_port}{_PATH}",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": token,
    }


def _answering(token: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            authorization = self.headers.get("Authorization", "")
            if self.path != _PATH or not hmac.compare_digest(authorization.encode(), token.encode()):
                self.send_error(HTTPStatus.FORBIDDEN)
            elif (document := _document()) is None:
                self.send_error(HTTPStatus.NOT_FOUND, "the function has no credentials")
            else:
                body = json.dumps(document).encode()
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:  # noqa: ANN401 - its signature
            """Log nothing: the log is the job's."""

    return Handler


def _document() -> dict[str, str | None] | None:
    """Return boto3's current credentials in the form that the SDKs expect; None if there are none."""
    credentials = Session().get_credentials()
    if credentials is None:
        return None
    frozen = credentials.get_frozen_credentials()
    end: datetime = getattr(credentials, "_expiry_time", None) or datetime.now(UTC) + _ASK_AGAIN_AFTER
    return {
        "AccessKeyId": frozen.access_key,
        "SecretAccessKey": frozen.secret_key,
        **({"Token": frozen.token} if frozen.token else {}),
        "Expiration": end.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
