"""S3Proxy as the S3 behind the wire: an implementation that shares nothing with moto, in a Java process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Self

import boto3
from botocore.config import Config
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from handler.settings import read_settings
from handler.spark.installation import find_java
from scripts.emulator.spark import JARS
from scripts.emulator.wire import forward
from soal.local.names import CREDENTIALS, REGION

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

    from mypy_boto3_s3 import S3Client
    from py4j.java_gateway import JavaObject

    from scripts.emulator.exchange import Reply, Request

_FOLDER: Final = JARS.with_name("s3proxy-jars")


def s3_proxy_jars() -> list[str]:
    """Return its jars, if they have been fetched: `scripts/setup --only s3proxy-jars`."""
    return [str(jar) for jar in sorted(_FOLDER.glob("*.jar"))]


class S3Proxy:
    """A context manager: `with S3Proxy() as backend, EmbeddedS3(backend=backend) as s3: …`. Its objects are in memory.

    The server ends with the block, or with this process, even if it is killed.
    """

    def __init__(self) -> None:
        self._gateway: JavaGateway | None = None
        self._server: JavaObject | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        jars = s3_proxy_jars()
        if not jars:
            raise FileNotFoundError(f"{_FOLDER} is empty; run scripts/setup --only s3proxy-jars")
        settings = read_settings({**os.environ, "SW_CHECKPOINT_BUCKET": "none"})
        port, self._process = launch_gateway(
            classpath=":".join(jars),
            java_path=str(find_java(settings.soal_home, settings.java_home)),
            javaopts=["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
            die_on_exit=True,
            return_proc=True,
        )
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        jvm = self._gateway.jvm
        gaul = jvm.org.gaul.s3proxy
        builder = gaul.S3Proxy.builder().endpoint(jvm.java.net.URI.create("http://127.0.0.1:0"))
        builder = builder.awsAuthentication(gaul.auth.AuthenticationType.NONE, None, None)
        self._server = builder.blobStore(gaul.nio2blob.TransientNio2BlobStore()).build()
        self._server.start()
        self._address = f"127.0.0.1:{self._server.getPort()}"
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.stop()
        if self._gateway is not None:
            self._gateway.shutdown()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()  # it ends at the end of its input
            self._process.wait()  # not communicate(): a thread of py4j's reads its output, and may close it

    def answer(self, request: Request) -> Reply:
        return forward(self._address, request, path=str(request.environ["RAW_URI"]))

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
            "s3", endpoint_url=f"http://{self._address}", config=Config(s3={"addressing_style": "path"}, proxies={})
        )
