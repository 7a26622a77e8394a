"""The class-data archive (AppCDS): Spark's classes, parsed and linked beforehand; Spark starts twice as fast.

The JVM uses it only if the class path begins as it did when the archive was made, each jar with the same size and time
stamp, and the build of Java is the same. Otherwise it silently starts without it, so each run reads the JVM's log.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["archive_of", "archive_options", "why_unused"]

_MAPPED: Final = re.compile(r"\[cds\] Mapped dynamic +region")
_REFUSED: Final = re.compile(r"\[info\]\[cds\] UseSharedSpaces: (.+)|\[warning\]\[cds[^\]]*\] (.+)")
_READ_MAX_BYTES: Final = 65_536
_HINT: Final = re.compile(r" *\(hint: .*\)")


def archive_of(soal_home: Path) -> Path:
    """Return the path of the archive, which may not exist."""
    return soal_home / "spark.jsa"


def archive_options(soal_home: Path, log: Path) -> tuple[str, ...]:
    """Return the options that make the JVM use the archive, and write to `log` whether it does."""
    archive = archive_of(soal_home)
    if not archive.is_file():
        return ("-Xshare:auto",)
    return (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", f"-Xlog:cds=info:file={log}")


def why_unused(soal_home: Path, log: Path) -> str | None:
    """Return why a JVM that was started with `archive_options` did not use the archive; None if it did, if it did not
    start at all, or if it was started for an earlier job, after which the log was removed.
    """
    archive = archive_of(soal_home)
    if not archive.is_file():
        return f"there is no class-data archive at {archive}"
    text = _read(log)
    if text is None:
        return None
    refusal = _REFUSED.search(text)
    if refusal is None and _MAPPED.search(text):
        return None
    reason = "it is damaged" if refusal is None else _HINT.sub("", refusal[1] or refusal[2]).rstrip(". ")
    return f"Java did not take the class-data archive {archive} ({reason})"


def _read(log: Path) -> str | None:
    """Return the beginning of a log; None if there is no regular file, which a job may have replaced."""
    with suppress(OSError):
        handle = os.open(log, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                return os.read(handle, _READ_MAX_BYTES).decode(errors="replace")
        finally:
            os.close(handle)
    return None
