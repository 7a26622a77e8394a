"""S3Proxy as the S3 behind the wire: an implementation that shares no code with moto, in a Java process.

Its path prefix is known only to the wire, because S3Proxy would also answer a web page's requests by a browser.
"""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Self

import boto3
from botocore.config import Config

from scripts.emulator.java import java
from soal.home import Home
from soal.local.names import CREDENTIALS, REGION
from soal.testing.s3.wire import forward

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mypy_boto3_s3 import S3Client

    from soal.testing.s3.exchange import Reply, Request

_FOLDER: Final = Home.of().path / "s3proxy-jars"


def s3_proxy_jars() -> list[Path]:
    """Return its jars, if they have been fetched: `scripts/setup --only s3proxy-jars`."""
    return sorted(_FOLDER.glob("*.jar"))


class S3Proxy:
    """A context manager: `with S3Proxy() as backend, EmbeddedS3(backend=backend) as s3: …`. Its objects are in memory.

    The server ends with the block, or with this process, even if it is killed.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        jars = s3_proxy_jars()
        if not jars:
            raise FileNotFoundError(f"{_FOLDER} is empty; run scripts/setup --only s3proxy-jars")
        with ExitStack() as stack:
            jvm = stack.enter_context(java(jars))
            gaul = jvm.org.gaul.s3proxy
            self._path = f"/{secrets.token_hex()}"
            builder = gaul.S3Proxy.builder().endpoint(jvm.java.net.URI.create("http://127.0.0.1:0"))
            builder = builder.awsAuthentication(gaul.auth.AuthenticationType.NONE, None, None).servicePath(self._path)
            server = builder.blobStore(gaul.nio2blob.TransientNio2BlobStore()).build()
            server.start()
            stack.callback(server.stop)
            self._address = f"127.0.0.1:{server.getPort()}"
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def answer(self, request: Request) -> Reply:
        return forward(self._address, request, path=f"{self._path}{request.environ['RAW_URI']}")

    def fill(self, bucket: str, objects: Mapping[str, bytes]) -> None:
        client = self._client()
        for key, body in objects.items():
            client.put_object(Bucket=bucket, Key=key, Body=body)

    def reset(self) -> None:
        client = self._client()
        for bucket in client.list_buckets()["Buckets"]:
            for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket["Name"]):
                for row in page.get("Contents", ()):
                    client.delete_object(Bucket=bucket["Name"], Key=row["Key"])
            client.delete_bucket(Bucket=bucket["Name"])

    def _client(self) -> S3Client:
        return boto3.session.Session(
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            region_name=REGION,
        ).client(
            "s3",
            endpoint_url=f"http://{self._address}{self._path}/",
            config=Config(s3={"addressing_style": "path"}, proxies={}),
        )
