"""An S3 on a free local port: moto or another server, behind a layer that traces and injects faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import boto3
from botocore.config import Config

from safewriter.objects.client import client_of
from soal.local.names import CREDENTIALS, REGION
from soal.testing.s3.backend import Moto
from soal.testing.s3.keepalive import KeepAliveServer
from soal.testing.s3.wire import OBSERVER, Wire

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mypy_boto3_s3 import S3Client

    from soal.testing.s3.backend import Backend
    from soal.testing.s3.exchange import Exchange
    from soal.testing.s3.rules import Rule


class EmbeddedS3:
    """A context manager: `with EmbeddedS3(buckets=["lake"]) as s3: s3.client().list_buckets()`.

    Each instance has its own buckets. `port` 0 takes a free port. Clients may not list the buckets in `unlistable`; a
    missing key there gives 404, as for the stack's roles, and 403 in the buckets in `hiding`. `rules` are the faults
    (soal.testing.s3.rules). `backend` is the S3 behind them, moto if None.
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
        # The socket is bound from here on, so that no other process can answer at the endpoint.
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
        """The endpoint URL for clients; buckets are in the path."""
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """Return variables that make a child process use this S3, and no other credentials or settings."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL_S3": self.endpoint}

    def client(self) -> S3Client:
        """Return a client that is subject to trace, rules and permissions, and never retries."""
        return self._client(CREDENTIALS["AWS_ACCESS_KEY_ID"])

    def observer(self) -> S3Client:
        """Return a client for setting up and inspecting: without trace, rules and permissions."""
        return self._client(OBSERVER)

    def keys(self, bucket: str, prefix: str = "") -> tuple[str, ...]:
        """Return all keys of a bucket under a prefix, sorted."""
        pages = self.observer().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return tuple(row["Key"] for page in pages for row in page.get("Contents", ()))

    def fill(self, bucket: str, objects: Mapping[str, bytes]) -> None:
        """Put objects into a bucket without requests."""
        self._backend.fill(bucket, objects)

    def trace(self) -> tuple[Exchange, ...]:
        """Return the requests of all clients so far, in order of completion."""
        return self.wire.trace()

    def reset(self) -> None:
        """Delete objects, rules and trace, and recreate the initial buckets."""
        self.wire.clear_rules()
        self._backend.reset()
        self._make_buckets()
        self.wire.clear_trace()

    def _make_buckets(self) -> None:
        observer = self.observer()
        for bucket in self._buckets:
            observer.create_bucket(Bucket=bucket)

    def _client(self, access_key: str) -> S3Client:
        session = boto3.session.Session(
            aws_access_key_id=access_key,
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            region_name=REGION,
        )
        config = Config(
            s3={"addressing_style": "path"},
            retries={"total_max_attempts": 1},
            connect_timeout=5,
            read_timeout=150,  # longer than a rule may hold a request
            proxies={},
        )
        client: S3Client = client_of("s3", config, endpoint=self.endpoint, session=session)
        return client
