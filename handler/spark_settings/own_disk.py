"""Hadoop's file systems for the function's own disk, of which each Spark session of a job gets these.

The disk is emptied after each job. So Spark writes there below the job's temporary folder, where its own files lie, and
nowhere else: a sink on that disk fails at its statement. One class of Hadoop's stands below all forms of a write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OWN_DISK", "STOCK"]

_FILES: Final = "spark.hadoop.fs.file.impl"
_OF_CONTEXT: Final = "spark.hadoop.fs.AbstractFileSystem.file.impl"

OWN_DISK: Final[Mapping[str, str]] = {
    _FILES: "io.soal.disk.LocalFiles",
    _OF_CONTEXT: "io.soal.disk.LocalFilesOfContext",
}
STOCK: Final[Mapping[str, str]] = {
    _FILES: "org.apache.hadoop.fs.LocalFileSystem",
    _OF_CONTEXT: "org.apache.hadoop.fs.local.LocalFs",
}
"""Hadoop's own, for a JVM that starts without our jars: the training of the class-data archive."""
