"""Fixtures and safeguards of all tests: no test can reach a real account, and a failed property can be replayed."""

from __future__ import annotations

import gc
import json
import os
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from scripts.emulator.s3_backends import BACKENDS, opened_backend
from scripts.provision.__main__ import main as setup
from soal.testing.s3.embedded import EmbeddedS3
from tests.support.lake import CHECKPOINTS, LAKE
from tests.support.spark_session import LOCAL_JARS, build_session, full_jars

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.logstore.jvm import LogStore
    from tests.support.ice import Catalog

# Before any import of a test module: remove the developer's AWS, Spark and SoAL settings from the environment.
_FOREIGN = ("AWS_", "SW_", "SOAL_", "SPARK_", "PYSPARK_", "LAMBDA_", "POWERTOOLS_", "SCRIPT_BUCKET")
for _name in [name for name in os.environ if name.startswith(_FOREIGN)]:
    del os.environ[_name]
os.environ.update(
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",
    AWS_REGION="us-east-1",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_CONFIG_FILE=os.devnull,
    AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    AWS_EC2_METADATA_DISABLED="true",
    # A client without an endpoint must fail instead of calling Amazon. Port 9 (discard) has no listener.
    AWS_ENDPOINT_URL="http://127.0.0.1:9",
)

collect_ignore = ["vendored"]  # Delta's own tests run inside of ours

# The same examples in each run, and no time for them: a busy machine makes no test fail.
settings.register_profile(
    "soal", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("soal")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from what stays: it would look at a million objects each time a client of S3 is made,
    which took half of the time of the tests that do that.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, 200)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that chooses the S3 of the Spark session."""
    parser.addoption("--s3", choices=BACKENDS, default=BACKENDS[0], help="the S3 behind the faults")


@pytest.fixture(scope="session")
def s3(request: pytest.FixtureRequest) -> Iterator[EmbeddedS3]:
    """The S3 of the only Spark session; its checkpoint bucket may not be listed, as with the stack's roles."""
    with (
        opened_backend(request.config.getoption("--s3")) as backend,
        EmbeddedS3(buckets=(LAKE, CHECKPOINTS), unlistable=(CHECKPOINTS,), backend=backend) as server,
    ):
        yield server


@pytest.fixture(scope="session")
def aws(request: pytest.FixtureRequest) -> tuple[Path, ...]:
    """AWS jars that the image lacks: fetched if a selected test needs them, empty if they cannot be fetched."""
    needed = any(item.get_closest_marker("aws") for item in request.session.items)
    return full_jars() if needed and setup(["--only", "full-jars"]) == 0 else ()


@pytest.fixture(scope="session")
def spark(s3: EmbeddedS3, aws: tuple[Path, ...]) -> Iterator[SparkSession]:
    """The only Spark session of a test run: a process cannot have two contexts, and a JVM takes seconds."""
    before = dict(os.environ)
    os.environ.update(s3.environment(), PYSPARK_PYTHON=sys.executable)  # Python workers with this run's packages
    try:
        session = build_session(s3.endpoint, more_jars=(*LOCAL_JARS, *aws))
    finally:  # the JVM has its credentials now, and no other test may find them
        os.environ.clear()
        os.environ.update(before)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def lite(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """The Iceberg catalog `lite`, in a SQLite file. All tests share it: a session opens a catalog once."""
    from tests.support.ice import Catalog  # with pyiceberg behind it, a second that most runs do not need

    return _known(spark, Catalog.sqlite("lite", tmp_path_factory.mktemp("catalog") / "lite.db"))


@pytest.fixture(scope="session")
def rest(spark: SparkSession, s3: EmbeddedS3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """The Iceberg catalog `rest`, a separate server."""
    from scripts.emulator.rest_catalog import RestCatalog
    from tests.support.ice import Catalog, warehouse

    with RestCatalog(s3, tmp_path_factory.mktemp("rest"), warehouse("rest")) as server:
        yield _known(spark, Catalog.rest("rest", server.uri, server.database))


@pytest.fixture(scope="session")
def postgres(spark: SparkSession) -> Iterator[Catalog]:
    """The Iceberg catalog `postgres`, in a server that requires a password."""
    from tests.support.ice import Catalog
    from tests.support.postgres import Postgres, find_postgres

    if find_postgres() is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: apt install postgresql)")
    password = uuid.uuid4().hex
    with Postgres(password) as server:
        yield _known(spark, Catalog.postgres("postgres", server.address, password))


@pytest.fixture(scope="session")
def glue(spark: SparkSession, s3: EmbeddedS3, aws: tuple[Path, ...]) -> Catalog:
    """The Iceberg catalog `glue`, in moto's Glue, of which a process has only one."""
    from tests.support.ice import Catalog

    _need(aws)
    return _known(spark, Catalog.glue("glue", s3.endpoint))


@pytest.fixture(scope="session")
def native(spark: SparkSession, s3: EmbeddedS3, aws: tuple[Path, ...]) -> Catalog:
    """The Iceberg catalog `native`: in Glue, with Iceberg's own S3 client."""
    from tests.support.ice import Catalog

    _need(aws)
    return _known(spark, Catalog.glue("native", s3.endpoint).with_s3_client(s3.endpoint))


def _need(aws: tuple[Path, ...]) -> None:
    if not aws:
        pytest.skip("the jars of image/full cannot be fetched; why: scripts/setup --only full-jars")


def _known(spark: SparkSession, catalog: Catalog) -> Catalog:
    for key, value in catalog.settings().items():
        spark.conf.set(key, value)
    known = json.loads(os.environ.get("SOAL_CONF", "{}"))
    os.environ["SOAL_CONF"] = json.dumps({**known, **catalog.settings()})  # settlers outside of the session reach it
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog.name}.db")
    return catalog


@pytest.fixture(scope="session")
def logstore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogStore]:
    """The log store's classes in a JVM without Spark."""
    from tests.logstore.jvm import LogStore, compiled

    folder = tmp_path_factory.mktemp("logstore")
    mutant = os.environ.get("LOGSTORE_CLASSES")  # of tests/logstore/mutants.py
    classes = [Path(one) for one in mutant.split(":")] if mutant else [compiled(folder)]
    with LogStore(folder / "stderr", *classes) as store:
        yield store


@pytest.fixture(autouse=True)
def turns_of_this_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget turns that an earlier test has left held in this process."""
    monkeypatch.setattr("safewriter.coordination.current._TURNS", [])
