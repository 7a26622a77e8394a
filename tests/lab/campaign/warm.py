"""A warm JVM for the retries: a cold one would take half of a case's time."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tests.lab.experiment.job import session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

__all__ = ["WarmSpark"]


class WarmSpark:
    """A laboratory's JVM. `settings`: settings of the whole Spark context; `temporary`: Java's folder for temporary
    files, by default the shared one.
    """

    def __init__(self, settings: Mapping[str, str] | None = None, temporary: str | None = None) -> None:
        self._settings = settings or {}
        self._temporary = temporary
        self._first: SparkSession | None = None

    def session(self, settings: Mapping[str, str]) -> SparkSession:
        """Return a fresh session with these settings; the previous user may have stopped the context."""
        if self._first is None or _is_stopped(self._first):
            with patch.object(tempfile, "tempdir", self._temporary or tempfile.tempdir):
                self._first = session("local[1]", self._settings, guarded=True)
        made = self._first.newSession()
        for key, value in settings.items():
            made.conf.set(key, value)
        return made

    def stop(self) -> None:
        """Stop the Spark context, and drop Java's state for this S3: the process's next laboratory has another one."""
        if self._first is not None and not _is_stopped(self._first):
            jvm: Any = self._first.sparkContext._jvm
            jvm.org.apache.hadoop.fs.FileSystem.closeAll()
            self._first.stop()


def _is_stopped(spark: SparkSession) -> bool:
    context: Any = spark.sparkContext._jsc
    return context is None or bool(context.sc().isStopped())
