"""The Hadoop file systems for the function's own disk, which each Spark session of a job gets.

The disk is emptied after each job. So these let Spark write there only below the job's temporary folder, where its own
files are: a sink on that disk fails at its statement. All forms of a write go through one class of Hadoop.
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
"""Hadoop's own file systems, for a JVM without SoAL's jars: the training of the class-data archive."""
