"""The log store of Delta in the tests' JVM: SoAL's, or Delta's own for S3."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["OURS", "STOCK", "log_store"]

STOCK: Final = "io.delta.storage.S3SingleDriverLogStore"
OURS: Final = "io.soal.logstore.ConditionalS3LogStore"
_SETTINGS: Final = ("spark.delta.logStore.s3a.impl", "spark.delta.logStore.s3.impl")


@contextmanager
def log_store(spark: SparkSession, store: str) -> Iterator[None]:
    """Make the whole JVM use a log store; afterwards it uses the shipped one again."""
    jvm: Any = spark.sparkContext._jvm
    conf = jvm.org.apache.spark.SparkEnv.get().conf()
    before = {name: conf.get(name) for name in _SETTINGS}

    def use(stores: dict[str, str]) -> None:
        for name, one in stores.items():
            conf.set(name, one)
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    use(dict.fromkeys(_SETTINGS, store))
    try:
        yield
    finally:
        use(before)
