"""Lambda's fan-out: eight processes append to one Iceberg table at once."""

from __future__ import annotations

import json
import time
import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.support.lake import CHECKPOINTS
from tests.support.processes import Child

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from scripts.emulator.s3 import EmbeddedS3
    from tests.support.ice import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.matrix]

WRITERS = 8
ROUNDS = 5
CATALOGS = ["lite", "rest", "postgres", pytest.param("glue", marks=pytest.mark.aws)]


@pytest.mark.usefixtures("run_key")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", CATALOGS)
def test_all_appends_of_eight_processes_are_committed(
    spark: SparkSession, s3: EmbeddedS3, kind: str, request: pytest.FixtureRequest
) -> None:
    """None fails, none is unknown, none is lost or doubled."""
    catalog: Catalog = request.getfixturevalue(kind)
    table = catalog.table(s3.observer())
    spark.sql(f"CREATE TABLE {table.name} (id LONG) USING iceberg")
    settings = json.dumps(catalog.settings())
    environment = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
    if (password := catalog.spark.get("jdbc.password")) is not None:
        environment["PGPASSWORD"] = password
    took = {}
    with ExitStack() as stack:
        children = [
            stack.enter_context(
                Child(
                    "tests.faults.appender", str(number), "iceberg", settings,
                    environment={**environment, "SOAL_RUN_KEY": uuid.uuid4().hex},
                )
            )
            for number in range(WRITERS)
        ]  # fmt: skip
        for child in children:
            child.expect("ready")
        for number in range(ROUNDS):
            began = time.monotonic()
            for child in children:
                child.tell(table.name)
            for child in children:
                child.expect(f"done {number}")
            took[number] = round(time.monotonic() - began, 1)
    print(kind, took)  # noqa: T201 - the figure
    documents = table.documents()
    assert [document.status for document in documents] == ["committed"] * WRITERS * ROUNDS
    assert {document.epoch for document in documents} == {1}
    assert table.rows() == WRITERS * ROUNDS
    table.check()
