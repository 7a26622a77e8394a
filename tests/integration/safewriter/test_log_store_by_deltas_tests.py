"""Delta's own published Python tests give the same results with SoAL's log store as with Delta's."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.deltas_tests import PASSED, World, deltas_tests
from tests.support.lake import LAKE
from tests.support.log_stores import OURS, STOCK, log_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3

pytestmark = pytest.mark.spark

# In every run: a few that walk through folders or read old versions, in less than a minute. CONVERT takes the longest;
# every run has it in test_log_store_beside_stock.py.
_SHORT: Final = frozenset(
    {
        "DeltaSqlTests.test_describe_history",
        "DeltaSqlTests.test_generate",
        "DeltaSqlTests.test_vacuum",
        "DeltaTableTests.test_restore_to_version",
    }
)
# Tests that fail with either store, and how their errors begin.
_FAILING: Final = {
    # They need table features that Delta has only in a JVM started with DELTA_TESTING.
    "DeltaTableTests.test_dropFeatureSupport": (
        "Py4JJavaError: org.apache.spark.sql.delta.DeltaTableFeatureException: [DELTA_UNSUPPORTED_FEATURES_IN_CONFIG]"
    ),
    # Two that Delta's own runner never calls, since they are inside another test; Delta fails their expectations. The
    # first has cloned twice when it fails.
    "DeltaTableTests.test_clone": (
        "Py4JJavaError: org.apache.spark.sql.delta.DeltaIllegalStateException: [DELTA_UNSUPPORTED_NON_EMPTY_CLONE]"
    ),
    "DeltaTableTests.test_clone_invalid_inputs": (
        "AssertionError: Did not catch expected Exception:target needs to be a string but got int"
    ),
}


@pytest.mark.parametrize(
    "test",
    [pytest.param(name, marks=() if name in _SHORT else pytest.mark.matrix) for name in sorted(deltas_tests())],
)
def test_a_test_of_deltas_ends_the_same_with_either_store(spark: SparkSession, s3: EmbeddedS3, test: str) -> None:
    """It passes, except those that pass with neither, and leaves objects of the same names."""
    outcomes = []
    for store in (STOCK, OURS):
        with log_store(spark, store):
            outcomes.append(World(spark.newSession(), s3, LAKE, f"deltas/{uuid.uuid4().hex}").run(test))
    stock, ours = outcomes

    assert ours == stock
    assert stock.result.startswith(_FAILING.get(test, PASSED))


def test_each_store_is_in_use_in_its_turn(spark: SparkSession, s3: EmbeddedS3) -> None:
    """SoAL's makes each commit conditional; Delta's does not."""
    conditions = []
    for store in (STOCK, OURS):
        world = World(spark.newSession(), s3, LAKE, f"deltas/{uuid.uuid4().hex}")
        with log_store(spark, store):
            world.session.range(3).write.format("delta").save(f"{world.root}/table")
        commits = [
            one.condition
            for one in s3.trace()
            if one.operation == "PutObject" and one.key == f"{world.prefix}/table/_delta_log/{0:020}.json"
        ]
        conditions.append(commits)
    assert conditions == [[None], ["If-None-Match: *"]]
