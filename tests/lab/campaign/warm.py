"""A JVM that stays: a cold one would take half of a case's time."""

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
    """The machine of a laboratory. `settings` are those that only a whole Spark context takes; `temporary` is Java's
    folder for temporary files, if it is none that all share.
    """

    def __init__(self, settings: Mapping[str, str] | None = None, temporary: str | None = None) -> None:
        self._settings = settings or {}
        self._temporary = temporary
        self._first: SparkSession | None = None

    def session(self, settings: Mapping[str, str]) -> SparkSession:
        """Return a fresh session with some settings; whoever has it may have stopped the context of the last one."""
        if self._first is None or _is_stopped(self._first):
            with patch.object(tempfile, "tempdir", self._temporary or tempfile.tempdir):
                self._first = session("local[1]", self._settings, guarded=True)
        made = self._first.newSession()
        for key, value in settings.items():
            made.conf.set(key, value)
        return made

    def stop(self) -> None:
        """End its Spark context, and what Java keeps of this S3: the next laboratory of the process has another one."""
        if self._first is not None and not _is_stopped(self._first):
            jvm: Any = self._first.sparkContext._jvm
            jvm.org.apache.hadoop.fs.FileSystem.closeAll()
            self._first.stop()


def _is_stopped(spark: SparkSession) -> bool:
    context: Any = spark.sparkContext._jsc
    return context is None or bool(context.sc().isStopped())
