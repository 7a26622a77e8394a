"""An Iceberg REST catalog on this machine: the servlet of Iceberg's tests in a JVM, with tables in SQLite.

The server writes metadata files to the given S3, as REST catalogs do. It has a host name that only the S3's wire knows,
because it would answer web pages' requests, which the wire refuses.
"""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Self

from handler.spark.installation import find_pyspark
from scripts.emulator.java import java
from soal.home import Home

if TYPE_CHECKING:
    from pathlib import Path

    from py4j.java_gateway import JavaObject, JVMView

    from soal.testing.s3.embedded import EmbeddedS3

_HOME: Final = Home.of()
_REST_JARS: Final = tuple(sorted((_HOME.path / "rest-jars").glob("*.jar")))
_BUCKET: Final = "rest-catalog"
_HADOOP: Final = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "jcl-over-slf4j-*.jar", "httpc*-4.*.jar")


class RestCatalog:
    """A context manager: `with RestCatalog(s3, folder, "s3a://bucket/warehouse") as catalog: catalog.uri`.

    The database is a file in `folder`. The server ends with the block, or with this process, even if it is killed.
    """

    def __init__(self, s3: EmbeddedS3, folder: Path, warehouse: str) -> None:
        self._s3 = s3
        self._folder = folder
        self._warehouse = warehouse
        self._stack = ExitStack()

    @property
    def uri(self) -> str:
        """The URI for clients. It goes through the S3's wire, so that rules and trace cover catalog requests."""
        return f"{self._s3.endpoint}/{_BUCKET}"

    @property
    def database(self) -> Path:
        """The SQLite file with the tables."""
        return self._folder / "rest.db"

    def __enter__(self) -> Self:
        if not _REST_JARS:
            raise FileNotFoundError(f"{_HOME.path / 'rest-jars'} is empty; run scripts/setup")
        with ExitStack() as stack:
            self._serve(stack.enter_context(java(_class_path())), stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _serve(self, jvm: JVMView, stack: ExitStack) -> None:
        iceberg, jetty = jvm.org.apache.iceberg, jvm.org.eclipse.jetty
        catalog = iceberg.CatalogUtil.buildIcebergCatalog("backend", self._properties(), self._hadoop(jvm))
        servlet = iceberg.rest.RESTCatalogServlet(iceberg.rest.RESTCatalogAdapter(catalog))
        context = jetty.ee10.servlet.ServletContextHandler()
        context.addServlet(jetty.ee10.servlet.ServletHolder(servlet), "/*")
        host = secrets.token_hex()
        context.setVirtualHosts([host])
        server = jetty.server.Server(jvm.java.net.InetSocketAddress("127.0.0.1", 0))
        server.setHandler(context)
        server.start()
        stack.callback(server.stop)
        self._s3.wire.lead(_BUCKET, f"127.0.0.1:{server.getConnectors()[0].getLocalPort()}", host)

    def _properties(self) -> dict[str, str]:
        return {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri": f"jdbc:sqlite:{self.database}",
            "jdbc.schema-version": "V1",
            "warehouse": self._warehouse,
            "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
        }

    def _hadoop(self, jvm: JVMView) -> JavaObject:
        configuration = jvm.org.apache.hadoop.conf.Configuration()
        credentials = self._s3.environment()
        for key, value in {
            "endpoint": self._s3.endpoint,
            "endpoint.region": "us-east-1",
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
            "access.key": credentials["AWS_ACCESS_KEY_ID"],
            "secret.key": credentials["AWS_SECRET_ACCESS_KEY"],
        }.items():
            configuration.set(f"fs.s3a.{key}", value)
        return configuration


def _class_path() -> tuple[Path, ...]:
    spark_home = find_pyspark()
    if spark_home is None:
        raise FileNotFoundError("PySpark is not installed; run scripts/setup")
    hadoop = [jar for pattern in _HADOOP for jar in sorted((spark_home / "jars").glob(pattern))]
    amazon = [jar for jar in sorted(_HOME.jars.glob("*.jar")) if not jar.name.startswith(("iceberg", "delta", "soal"))]
    # Iceberg's test jar contains its own copy of an S3A class, so it must come last on the class path.
    local = sorted((_HOME.path / "local-jars").glob("*.jar"))
    return (*sorted((*_REST_JARS, *local, *amazon, *hadoop), key=lambda jar: jar.name.endswith("-tests.jar")),)
