"""The account's server behind a gateway: `python gateway.py FILE` in ministack's own environment.

Ministack treats requests without a key, or with an account's number as key, as root, and asks for no signature; a
request for a path below `/_ministack/` changes how functions run, for example as programs of this machine; and
ministack decodes Lambda's paths twice, the second time behind the check of rights. The gateway refuses all of these,
and requests of browsers. Root makes one administrator, whose key goes to FILE as JSON; ministack checks the signatures
of everybody else.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlencode

from ministack import app as ministack

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

_USER: Final = "administrator"
_ALL: Final = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
_OF_PAGES: Final = (b"origin", b"sec-fetch-site")
"""What a browser sends with a request of a web page."""
_KEY: Final = re.compile(r"<AccessKeyId>([^<]+)<")
_SECRET: Final = re.compile(r"<SecretAccessKey>([^<]+)<")
_HEADER: Final = re.compile(rb"AWS4-HMAC-SHA256 Credential=(?:AKIA|ASIA)[A-Z0-9]+/")
_NAMED: Final = re.compile(r"(?:AKIA|ASIA)[A-Z0-9]+/", re.ASCII)
"""Keys of users and of sessions, as ministack gives them: a root's is a number, or a word."""
_IN_QUERY: Final = "X-Amz-Credential"
_IN_QUERIES: Final = ("x-amz-credential", "awsaccesskeyid")
_FOR_S3: Final = re.compile(rb"/s3/aws4_request\b")
_CLOSED: Final = ("/_ministack/", "/_localstack/", "/v2/", "/health", "/latest/", "/oauth2/")
"""Ministack's own settings, and places at which it asks nobody for a signature (the registry of images, instance
metadata).
"""


class Gateway:
    """An ASGI application in front of ministack's. `made` is called once, before the first request."""

    def __init__(self, made: Callable[[str, str], None]) -> None:
        self._inner = ministack.app
        self._made = made

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, self._opening(send))
        elif (reason := refusal(scope)) is None:
            await self._inner(scope, receive, send)
        elif scope["type"] == "http":
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": reason.encode()})
        else:
            await send({"type": "websocket.close"})

    def _opening(self, send: Send) -> Send:
        async def opening(message: Message) -> None:
            if message["type"] == "lifespan.startup.complete":
                self._made(*await self._administrator())
            await send(message)

        return opening

    async def _administrator(self) -> tuple[str, str]:
        """Make the user; return its key and secret."""
        await self._iam(Action="CreateUser", UserName=_USER)
        await self._iam(Action="PutUserPolicy", UserName=_USER, PolicyName="all", PolicyDocument=json.dumps(_ALL))
        answer = await self._iam(Action="CreateAccessKey", UserName=_USER)
        key, secret = _KEY.search(answer), _SECRET.search(answer)
        if key is None or secret is None:
            raise RuntimeError(f"ministack named no key: {answer}")
        return key[1], secret[1]

    async def _iam(self, **parameters: str) -> str:
        account = os.environ["MINISTACK_ACCOUNT_ID"]
        signed = f"AWS4-HMAC-SHA256 Credential={account}/20260101/us-east-1/iam/aws4_request, SignedHeaders=host"
        headers = {
            b"host": b"iam.amazonaws.com",
            b"content-type": b"application/x-www-form-urlencoded",
            b"authorization": f"{signed}, Signature=0".encode(),
        }
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "https",
            "path": "/",
            "raw_path": b"/",
            "query_string": b"",
            "headers": list(headers.items()),
            "client": ("127.0.0.1", 0),
        }
        body = urlencode({**parameters, "Version": "2010-05-08"}).encode()
        answers: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            answers.append(message)

        await self._inner(scope, receive, send)
        text = b"".join(answer.get("body", b"") for answer in answers).decode()
        if answers[0]["status"] != 200:  # noqa: PLR2004 - HTTP's OK
            raise RuntimeError(f"ministack did not make its administrator: {text}")
        return text


def refusal(scope: Message) -> str | None:
    """Return why a request is not let in, None if it is."""
    if any(name.lower() in _OF_PAGES for name, _ in scope["headers"]):
        return "no web page may talk to this account"
    if scope["path"].startswith(_CLOSED):
        return "this path is closed here"
    credential = _credential(scope)
    if credential is None:
        return "this account has no root: sign with a key that it has given"
    if "%" in scope["path"] and not _FOR_S3.search(credential):
        return "only a key of S3 may hold a percent sign"
    return None


def _credential(scope: Message) -> bytes | None:
    """Return the one credential that a request names; None without one that all readers understand alike."""
    headers = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
    query = scope["query_string"]
    if not query.isascii():
        return None
    parameters = parse_qs(query.decode("ascii"), keep_blank_values=True)
    named = [name for name in parameters if name.lower() in _IN_QUERIES]
    if not named:
        return headers[0] if len(headers) == 1 and _HEADER.match(headers[0]) else None
    values = parameters[named[0]]
    # Ministack reads two spellings of the name and leaves out all others, as if nobody had named a key.
    is_one = not headers and named == [_IN_QUERY] and len(values) == 1
    return values[0].encode() if is_one and _NAMED.match(values[0]) else None


def main(file: Path) -> None:
    """Serve until a signal ends the process."""

    def made(key: str, secret: str) -> None:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            json.dump({"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}, out)

    ministack.app = Gateway(made)
    sys.argv = sys.argv[:1]
    ministack.main()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
