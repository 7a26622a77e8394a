from __future__ import annotations

from scripts.provision.relist import shipped_twice


def test_an_artifact_that_pyspark_ships_is_found_in_any_version() -> None:
    """A second version of a jar on one class path is the one that breaks at run time: it is named."""
    ours = ["jackson-core-2.13.0.jar", "s3-2.29.52.jar", "delta-spark_4.1_2.13-4.4.0.jar", "http-auth-2.29.52.jar"]
    theirs = ["jackson-core-2.20.0.jar", "jackson-2.20.0.jar", "http-auth-spi-1.jar", "s3-transfer-1.jar"]

    assert shipped_twice(ours, theirs) == ["jackson-core-2.13.0.jar"]
