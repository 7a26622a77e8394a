"""What holds for every test: no real account can be reached by accident, and a failed property can be played again."""

from __future__ import annotations

import gc
import os
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from scripts.emulator.s3 import EmbeddedS3
from scripts.emulator.spark import LOCAL_JARS, build_session, full_jars
from scripts.provision.__main__ import main as setup
from tests.support.lake import CHECKPOINTS, LAKE
from tests.support.s3_backends import BACKENDS, opened_backend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.logstore.jvm import LogStore
    from tests.support.ice import Catalog

# Before any test module is imported: what a developer's shell says about AWS, Spark or SoAL is not part of a test.
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
    # A client whose endpoint was forgotten must fail, not call Amazon. Port 9 (discard) has no listener.
    AWS_ENDPOINT_URL="http://127.0.0.1:9",
)

collect_ignore = ["vendored"]  # Delta's own tests run inside of ours

# No time limit for one example (tests assert no times); a failure prints what to paste to see it again.
settings.register_profile("soal", deadline=None, print_blob=True)
settings.load_profile("soal")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from what stays: it would look at a million objects each time a client of S3 is made,
    which took half of the time of the tests that do that.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, 200)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run choose the S3 that its Spark session writes to."""
    parser.addoption("--s3", choices=BACKENDS, default=BACKENDS[0], help="the S3 behind the faults")


@pytest.fixture(scope="session")
def s3(request: pytest.FixtureRequest) -> Iterator[EmbeddedS3]:
    """The S3 of the one Spark session; its checkpoint bucket may not be listed, as by the stack's roles."""
    with (
        opened_backend(request.config.getoption("--s3")) as backend,
        EmbeddedS3(buckets=(LAKE, CHECKPOINTS), unlistable=(CHECKPOINTS,), backend=backend) as server,
    ):
        yield server


@pytest.fixture(scope="session")
def aws(request: pytest.FixtureRequest) -> tuple[Path, ...]:
    """Jars of AWS that the image lacks: fetched if a test that needs them was selected, none if they cannot be."""
    needed = any(item.get_closest_marker("aws") for item in request.session.items)
    return full_jars() if needed and setup(["--only", "full-jars"]) == 0 else ()


@pytest.fixture(scope="session")
def spark(s3: EmbeddedS3, aws: tuple[Path, ...]) -> Iterator[SparkSession]:
    """The one Spark session of a test run: a process can have no second context, and a JVM costs seconds."""
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
    """The Iceberg catalog `lite`, on a SQLite file. One for all tests: a session opens a catalog once."""
    from tests.support.ice import Catalog  # with pyiceberg behind it, a second that most runs do not need

    return _known(spark, Catalog.sqlite("lite", tmp_path_factory.mktemp("catalog") / "lite.db"))


@pytest.fixture(scope="session")
def rest(spark: SparkSession, s3: EmbeddedS3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """The Iceberg catalog `rest`, a server of its own."""
    from scripts.emulator.rest_catalog import RestCatalog
    from tests.support.ice import Catalog, warehouse

    with RestCatalog(s3, tmp_path_factory.mktemp("rest"), warehouse("rest")) as server:
        yield _known(spark, Catalog.rest("rest", server.uri, server.database))


@pytest.fixture(scope="session")
def postgres(spark: SparkSession) -> Iterator[Catalog]:
    """The Iceberg catalog `postgres`, in a server that asks for a password."""
    from tests.support.ice import Catalog
    from tests.support.postgres import Postgres, find_postgres

    if find_postgres() is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: apt install postgresql)")
    password = uuid.uuid4().hex
    with Postgres(password) as server:
        yield _known(spark, Catalog.postgres("postgres", server.address, password))


@pytest.fixture(scope="session")
def glue(spark: SparkSession, s3: EmbeddedS3, aws: tuple[Path, ...]) -> Catalog:
    """The Iceberg catalog `glue`, in moto's Glue, which is one for the whole process."""
    from tests.support.ice import Catalog

    _need(aws)
    return _known(spark, Catalog.glue("glue", s3.endpoint))


@pytest.fixture(scope="session")
def native(spark: SparkSession, s3: EmbeddedS3, aws: tuple[Path, ...]) -> Catalog:
    """The Iceberg catalog `native`: in Glue, with Iceberg's own way to S3."""
    from tests.support.ice import Catalog

    _need(aws)
    return _known(spark, Catalog.glue("native", s3.endpoint).with_s3_client(s3.endpoint))


def _need(aws: tuple[Path, ...]) -> None:
    if not aws:
        pytest.skip("the jars of image/full cannot be fetched; why: scripts/setup --only full-jars")


def _known(spark: SparkSession, catalog: Catalog) -> Catalog:
    for key, value in catalog.settings().items():
        spark.conf.set(key, value)
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
    """A process knows the turns that it holds; those that another test has left are none of this one's."""
    monkeypatch.setattr("safewriter.coordination.current._TURNS", [])
