"""The handler starts Java with a class-data archive if it exists, and reports from Java's log why one was refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from handler.spark.archive import archive_of, archive_options, why_unused

if TYPE_CHECKING:
    from pathlib import Path

TAKEN = """[0.003s][info][cds] trying to map /opt/soal/spark.jsa
[0.003s][info][cds] full module graph: disabled due to incompatible property
[0.011s][info][cds] Mapped dynamic region #0 at base 0x00007f4077bc7000 top 0x00007f407df0e000 (ReadWrite)
[0.012s][info][cds] CDS heap data is being ignored. UseG1GC, UseCompressedOops and others are required.
"""
REFUSED = (
    TAKEN + "[0.6s][info][cds] UseSharedSpaces: shared class paths mismatch (hint: enable -Xlog:class+path=info)\n"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    archive_of(tmp_path).touch()
    return tmp_path


def test_an_archive_is_used_and_its_use_is_logged(home: Path) -> None:
    """The JVM starts without it if necessary; the log shows which."""
    archive, share, log = archive_options(home, home / "a.log")
    assert archive == f"-XX:SharedArchiveFile={home}/spark.jsa"
    assert share == "-Xshare:auto"
    assert log == f"-Xlog:cds=info:file={home}/a.log"


def test_without_an_archive_java_gets_none(tmp_path: Path) -> None:
    """With the name of a missing archive, the JVM would not use its own either."""
    assert archive_options(tmp_path, tmp_path / "a.log") == ("-Xshare:auto",)
    assert why_unused(tmp_path, tmp_path / "a.log") == f"there is no class-data archive at {tmp_path}/spark.jsa"


def test_an_archive_that_was_taken_is_nothing_to_tell(home: Path) -> None:
    """Nor is a JVM that did not start at all."""
    assert why_unused(home, home / "a.log") is None
    (home / "a.log").write_text(TAKEN)
    assert why_unused(home, home / "a.log") is None


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (REFUSED, "shared class paths mismatch"),
        (
            "[0.2s][warning][cds,dynamic] Unable to use shared archive. The top archive failed to load: /x.jsa\n",
            "Unable to use shared archive. The top archive failed to load: /x.jsa",
        ),
        (
            "[0.0s][warning][cds] Cannot handle shared archive file version 0xb. Must be at least 0xd.\n",
            "Cannot handle shared archive file version 0xb. Must be at least 0xd",
        ),
        ("", "it is damaged"),
    ],
)
def test_an_archive_that_was_refused_is_told_with_java_s_reason(home: Path, log: str, reason: str) -> None:
    """The logs are Java 17's for other jars, a broken base, another Java, and a file that is not an archive."""
    (home / "a.log").write_text(log)
    assert why_unused(home, home / "a.log") == f"Java did not take the class-data archive {home}/spark.jsa ({reason})"


@pytest.mark.parametrize("what", ["pipe", "link"])
def test_what_a_job_has_put_in_the_log_s_place_is_not_read(home: Path, what: str) -> None:
    """A pipe would hang the handler, and a link would expose another file."""
    log = home / "a.log"
    if what == "pipe":
        os.mkfifo(log)
    else:
        (home / "other").write_text(REFUSED)
        log.symlink_to(home / "other")
    assert why_unused(home, log) is None
