"""An Iceberg catalog in PostgreSQL, on the variant full: the image can settle its writes."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.ice import Catalog
from tests.support.postgres import Postgres, find_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

    from soal.testing.s3 import EmbeddedS3
    from tests.image.conftest import Cage

pytestmark = [pytest.mark.image, pytest.mark.slow]

APPENDS: Final = """
    import os, pathlib, signal, sys, time
    from pyspark.sql import SparkSession
    from safewriter import SafeWriter

    (table,) = sys.argv[1:]
    spark = SparkSession.builder.getOrCreate()
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.rpartition('.')[0]}")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {table} (id BIGINT) USING iceberg")
    is_first = spark.sql(f"SHOW TBLPROPERTIES {table}").filter("key = 'tried'").isEmpty()
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('tried' = 'once')")
    with SafeWriter(spark, table, format="iceberg") as sw:
        spark.range(3).writeTo(sw.table).append()
        if is_first:
            above = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
            os.kill(int(above.rpartition(")")[2].split()[1]), signal.SIGKILL)
            time.sleep(60)
        sw.success()
    """


@pytest.fixture(scope="module")
def catalog() -> Iterator[Catalog]:
    if find_postgres() is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: apt install postgresql)")
    password = uuid.uuid4().hex
    with Postgres(password) as server:
        yield Catalog.postgres("postgres", server.address, password)


def test_a_write_whose_java_is_gone_is_settled_in_its_database(
    cage: Cage, lake: EmbeddedS3, variant: str, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python alone settles it, and the retry writes each row once."""
    if variant != "full":
        pytest.skip("the variant slim has no driver of PostgreSQL, and says so: tests/image/test_features.py")
    for name, value in lake.environment().items():
        monkeypatch.setenv(name, value)  # for the reader
    table = catalog.table(lake.observer())
    event = {"entryPointArguments": [table.name], "clientToken": uuid.uuid4().hex}
    with cage.function({"SOAL_CONF": json.dumps(catalog.settings())}) as function:
        killed, retried = (cage.run(function, APPENDS, **event) for _ in range(2))
    assert (killed.state, [write.status for write in killed.writes]) == ("FAILED", ["rolled_back"]), killed.log_tail
    assert (retried.state, [write.status for write in retried.writes]) == ("SUCCESS", ["committed"]), retried.log_tail
    assert sorted(row["id"] for row in table.load().scan().to_arrow().to_pylist()) == [0, 1, 2]
