"""An S3 on a free port of this machine: moto, or another one, behind a layer that traces, orders and breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import boto3
from botocore.config import Config

from scripts.emulator.backend import Moto
from scripts.emulator.keepalive import KeepAliveServer
from scripts.emulator.wire import OBSERVER, Wire
from soal.local.names import CREDENTIALS, REGION

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mypy_boto3_s3 import S3Client

    from scripts.emulator.backend import Backend
    from scripts.emulator.exchange import Exchange
    from scripts.emulator.rules import Rule


class EmbeddedS3:
    """A context manager: `with EmbeddedS3(buckets=["lake"]) as s3: s3.client().list_buckets()`.

    Each instance has buckets of its own. `port` 0 takes a free one. `unlistable` names buckets that the clients may not
    list; a missing key there is 404, as for the stack's roles. In a bucket of `hiding` it is 403. `rules` are the
    faults (scripts.emulator.rules). `backend`: the S3 behind them; None: moto.
    """

    def __init__(
        self,
        port: int = 0,
        rules: Iterable[Rule] = (),
        *,
        buckets: Iterable[str] = (),
        unlistable: Collection[str] = (),
        hiding: Collection[str] = (),
        backend: Backend | None = None,
    ) -> None:
        self._backend = backend or Moto()
        self._buckets = tuple(buckets)
        self.wire = Wire(self._backend, rules=rules, unlistable=unlistable, hiding=hiding)
        # The socket is ours from here on, so nobody else can answer at the endpoint.
        self._server = KeepAliveServer(self.wire, port)

    def __enter__(self) -> Self:
        self._server.start()
        self._make_buckets()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()
        self._backend.reset()

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return int(self._server.server_port)

    @property
    def endpoint(self) -> str:
        """The URL that clients take as their endpoint; buckets are in the path."""
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """Return the variables with which a child process finds this S3, and no other credentials or settings."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL_S3": self.endpoint}

    def client(self) -> S3Client:
        """Make a client like any other: in the trace, hit by the rules, bound by the permissions. It never retries."""
        return self._client(CREDENTIALS["AWS_ACCESS_KEY_ID"])

    def observer(self) -> S3Client:
        """Make a client that observes and prepares: not in the trace, hit by no rule, allowed everything."""
        return self._client(OBSERVER)

    def keys(self, bucket: str, prefix: str = "") -> tuple[str, ...]:
        """Return every key of a bucket under a prefix, in order."""
        pages = self.observer().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return tuple(row["Key"] for page in pages for row in page.get("Contents", ()))

    def fill(self, bucket: str, objects: Mapping[str, bytes]) -> None:
        """Make objects by their keys, without a request for each."""
        self._backend.fill(bucket, objects)

    def trace(self) -> tuple[Exchange, ...]:
        """Return the requests of all clients so far, in the order in which they ended."""
        return self.wire.trace()

    def reset(self) -> None:
        """Empty everything: objects, rules, trace. The buckets given at the start are there again."""
        self.wire.clear_rules()
        self._backend.reset()
        self._make_buckets()
        self.wire.clear_trace()

    def _make_buckets(self) -> None:
        observer = self.observer()
        for bucket in self._buckets:
            observer.create_bucket(Bucket=bucket)

    def _client(self, access_key: str) -> S3Client:
        return boto3.session.Session(
            aws_access_key_id=access_key,
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            region_name=REGION,
        ).client(
            "s3",
            endpoint_url=self.endpoint,
            config=Config(
                s3={"addressing_style": "path"},
                retries={"total_max_attempts": 1},
                connect_timeout=5,
                read_timeout=150,  # longer than a rule may hold a request
                proxies={},
            ),
        )
