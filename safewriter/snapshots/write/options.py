"""Changes of the Spark session while a build runs: settings, and a cache of its input."""

from __future__ import annotations

import logging
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from safewriter.snapshots.errors import ConfigValidationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark import StorageLevel
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["cached", "overridden"]

_log = logging.getLogger(__name__)


@contextmanager
def overridden(spark: SparkSession, settings: Mapping[str, str] | None) -> Iterator[None]:
    """Set settings of a session, and restore them in reverse order in any case.

    Raises `ConfigValidationError` for a setting that a session cannot change, or a value that Spark refuses.
    """
    with ExitStack() as stack:
        for name, value in (settings or {}).items():
            if not spark.conf.isModifiable(name):
                raise ConfigValidationError(
                    f"spark_conf_overrides: a Spark session cannot change {name}. Spark does not know it, or it is set"
                    " before Spark starts"
                )
            before = spark.conf.get(name, None)
            try:
                spark.conf.set(name, value)
            except Exception as error:
                raise ConfigValidationError(
                    f"spark_conf_overrides: Spark refuses a value for {name}: {error}"
                ) from error
            stack.callback(_restore, spark, name, before)
        yield


@contextmanager
def cached(df: DataFrame, *, cache_input: bool, storage_level: StorageLevel | None) -> Iterator[DataFrame]:
    """Cache the rows of a build while it runs. If that fails, Spark reads them again. The caller's own cache stays."""
    if storage_level is not None and not cache_input:
        raise ConfigValidationError("storage_level says how the input is cached; give cache_input=True with it")
    if not cache_input or df.storageLevel.useMemory or df.storageLevel.useDisk:
        yield df
        return
    try:
        df.persist() if storage_level is None else df.persist(storage_level)
    except Exception:  # noqa: BLE001 - the build also works without a cache
        _log.warning("the input of a snapshot could not be cached; Spark may read it more than once", exc_info=True)
    try:
        yield df
    finally:
        try:
            df.unpersist(blocking=False)
        except Exception:  # noqa: BLE001 - as above
            _log.warning("the cached input of a snapshot could not be released", exc_info=True)


def _restore(spark: SparkSession, name: str, before: str | None) -> None:
    try:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)
    except Exception:  # noqa: BLE001 - restore the others; this must not change the build's outcome
        _log.warning("the Spark setting %s could not be restored", name, exc_info=True)
