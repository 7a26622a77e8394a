"""What catalogs ask of their clients, as rules of the wire before Iceberg's own REST server, which asks nothing."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from soal.local.names import CREDENTIALS, REGION
from soal.testing.s3 import Match, Rule
from soal.testing.s3.exchange import Reply

if TYPE_CHECKING:
    from soal.testing.s3.embedded import EmbeddedS3
    from soal.testing.s3.exchange import Request

__all__ = ["CATALOG", "Dedup", "OAuth", "SigV4", "Signing", "Vending"]

CATALOG: Final = "rest-catalog"
"""The name of `scripts.emulator.rest_catalog`'s server on the wire."""
_SECRET: Final = CREDENTIALS["AWS_SECRET_ACCESS_KEY"]


def _answer(status: int, body: object) -> Reply:
    return Reply(status, (("Content-Type", "application/json"),), json.dumps(body).encode())


def _refused(status: int, kind: str, text: str) -> Reply:
    return _answer(status, {"error": {"message": text, "type": kind, "code": status}})


class _Before(ABC):
    """A catalog's own rule; `on` puts it in front of the server."""

    def on(self, s3: EmbeddedS3) -> None:
        s3.wire.add(Rule(Match(bucket=CATALOG), self, times=None))

    @abstractmethod
    def __call__(self, request: Request) -> Reply: ...


@dataclass
class OAuth(_Before):
    """A login by client credentials or by the exchange of a token. Tokens are good until the test ends them."""

    client: str
    """`id:secret`."""
    expires_in_s: int = 3600
    """What the answers say, so that Iceberg renews its tokens."""
    issued: list[str] = field(default_factory=list)
    ended: set[str] = field(default_factory=set)
    refused: int = 0

    def end(self, tokens: list[str]) -> None:
        self.ended |= set(tokens)

    def __call__(self, request: Request) -> Reply:
        if request.key.endswith("oauth/tokens"):
            return self._token(request)
        if not self._holds(str(request.environ.get("HTTP_AUTHORIZATION", "")).removeprefix("Bearer ")):
            request.body()
            self.refused += 1
            return _refused(401, "NotAuthorizedException", "no token, or one that has ended")
        return request.apply()

    def _holds(self, token: str) -> bool:
        return token in self.issued and token not in self.ended

    def _token(self, request: Request) -> Reply:
        form = {name: values[0] for name, values in parse_qs(request.body().decode()).items()}
        knows = f"{form.get('client_id')}:{form.get('client_secret')}" == self.client
        if not knows and not self._holds(form.get("subject_token", "")):
            return _answer(401, {"error": "invalid_client"})
        self.issued.append(f"token-{len(self.issued)}")
        kind = "urn:ietf:params:oauth:token-type:access_token"
        told = {"token_type": "bearer", "issued_token_type": kind, "expires_in": self.expires_in_s}
        return _answer(200, {"access_token": self.issued[-1], **told})


class _OfBody(SigV4Auth):
    """The signature over the body's own hash, as AWS computes it: Iceberg sends the hash in base64, too."""

    def headers_to_sign(self, request: AWSRequest) -> Any:
        return request.headers

    def canonical_request(self, request: AWSRequest) -> str:
        return f"{super().canonical_request(request).rpartition(chr(10))[0]}\n{self.payload(request)}"


@dataclass
class SigV4(_Before):
    """A login by AWS's signature for a service."""

    service: str
    checked: int = 0

    def __call__(self, request: Request) -> Reply:
        environ = request.environ
        given = str(environ.get("HTTP_AUTHORIZATION", ""))
        names = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
        every = {**environ, "HTTP_CONTENT_TYPE": environ.get("CONTENT_TYPE")}
        headers = {name: every.get(f"HTTP_{name.upper().replace('-', '_')}", "") for name in names}
        url = f"http://{environ['HTTP_HOST']}{environ['RAW_URI']}"
        signed = AWSRequest(environ["REQUEST_METHOD"], url, headers, request.body())
        signed.context["timestamp"] = headers.get("x-amz-date", "")
        signer = _OfBody(Credentials(CREDENTIALS["AWS_ACCESS_KEY_ID"], _SECRET), self.service, REGION)
        expected = signer.signature(signer.string_to_sign(signed, signer.canonical_request(signed)), signed)
        if not given.endswith(f"Signature={expected}"):
            return _refused(403, "ForbiddenException", "another signature")
        self.checked += 1
        return request.apply()


@dataclass
class _OfFiles(_Before):
    """A rule that also stands in front of a table's files, of which the catalog itself has only the metadata."""

    lake: str
    prefix: str

    def on(self, s3: EmbeddedS3) -> None:
        super().on(s3)
        files = Match(bucket=self.lake, key=rf"^{self.prefix}(?!.*\.metadata\.json$)")
        s3.wire.add(Rule(files, self._file, times=None))

    @abstractmethod
    def _file(self, request: Request) -> Reply: ...


@dataclass
class Vending(_OfFiles):
    """A catalog that lends keys for the tables' files, `AKIALENT<number>`, until the test ends them.

    Without such a key nobody reads or writes a file but the catalog its metadata.
    """

    renews: bool = False
    """Whether its answers say that the keys end now, and where new ones are."""
    lent: int = 0
    ended: int = 0
    denied: list[str] = field(default_factory=list)

    def end(self) -> None:
        self.ended = self.lent

    def _file(self, request: Request) -> Reply:
        number = (request.access_key or "").removeprefix("AKIALENT")
        if not number.isdigit() or int(number) <= self.ended:
            request.body()
            self.denied.append(f"{request.operation} {request.access_key}")
            return Reply.error(403, "not with this key")
        return request.apply()

    def _keys(self) -> dict[str, str]:
        self.lent += 1
        return {
            "s3.access-key-id": f"AKIALENT{self.lent}",
            "s3.secret-access-key": _SECRET,
            "s3.session-token": f"session-{self.lent}",
            "s3.session-token-expires-at-ms": str(int(time.time() * 1000) + (0 if self.renews else 3_600_000)),
        }

    def __call__(self, request: Request) -> Reply:
        if request.key.endswith("/credentials"):
            return _answer(200, {"storage-credentials": [{"prefix": f"s3://{self.lake}/", "config": self._keys()}]})
        reply = request.apply()
        asked = "vended-credentials" in request.environ.get("HTTP_X_ICEBERG_ACCESS_DELEGATION", "")
        if (
            not asked
            or reply.status != HTTPStatus.OK
            or "/tables" not in request.key
            or request.key.endswith("/metrics")
        ):
            return reply
        body: dict[str, Any] = json.loads(reply.body)
        place = {"client.refresh-credentials-endpoint": f"{request.key}/credentials"} if self.renews else {}
        return _answer(200, {**body, "config": {**body.get("config", {}), **self._keys(), **place}})


@dataclass
class Signing(_OfFiles):
    """A catalog that signs the requests for the tables' files with a key of its own, `AKIASIGNER`."""

    signed: int = 0
    denied: list[str] = field(default_factory=list)

    def _file(self, request: Request) -> Reply:
        if request.access_key != "AKIASIGNER":
            request.body()
            self.denied.append(f"{request.operation} {request.access_key}")
            return Reply.error(403, "not signed by the catalog")
        return request.apply()

    def __call__(self, request: Request) -> Reply:
        if not request.key.endswith("/sign"):
            return request.apply()
        asked: dict[str, Any] = json.loads(request.body())
        self.signed += 1
        own = AWSRequest(asked["method"], asked["uri"], {"host": urlsplit(asked["uri"]).netloc}, b"")
        own.context["payload_signing_enabled"] = False
        S3SigV4Auth(Credentials("AKIASIGNER", _SECRET), "s3", asked["region"]).add_auth(own)
        headers = {**asked["headers"], **{name: [value] for name, value in own.headers.items()}}
        return _answer(200, {"uri": asked["uri"], "headers": headers})


@dataclass
class Dedup(_Before):
    """A catalog that says that it knows a repeated request by its key, as the server behind it does."""

    def on(self, s3: EmbeddedS3) -> None:
        s3.wire.add(Rule(Match(bucket=CATALOG, key="^v1/config$"), self, times=None))

    def __call__(self, request: Request) -> Reply:
        reply = request.apply()
        return _answer(200, {**json.loads(reply.body), "idempotency-key-lifetime": "PT30M"})
