"""The journal of a supervised block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import safewriter
from safewriter import SafeWriter
from safewriter.record.journal import Journal
from tests.integration.safewriter.appending import append

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.lake import Lake

pytestmark = pytest.mark.spark


def test_a_supervised_block_tells_its_journal_first(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened, before anything is on S3; passed, before the commit is sent; its `success()`; closed."""
    monkeypatch.setenv("SOAL_JOURNAL", str(tmp_path / "journal"))
    with Journal(tmp_path / "journal") as journal:
        append(spark, lake)
        _, *entries = journal.entries()
    assert [entry.event for entry in entries] == ["write_opened", "commit_passed", "succeeded", "write_closed"]
    assert len({entry.fields["nonce"] for entry in entries}) == 1


def test_without_its_journal_a_block_is_refused_before_it_does_anything(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor would miss the write; the error says so, and nothing is on S3."""
    monkeypatch.setenv("SOAL_JOURNAL", str(tmp_path / "journal"))
    with pytest.raises(safewriter.UsageError, match=r"nothing was written: the journal .* is gone"):
        append(spark, lake)
    assert lake.documents() == []
    assert list(tmp_path.iterdir()) == []


def test_a_commit_is_refused_once_the_journal_is_gone(
    spark: SparkSession, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The supervisor reads a missing line as a commit that was never sent, so none is sent without it."""
    path = tmp_path / "journal"
    monkeypatch.setenv("SOAL_JOURNAL", str(path))
    with Journal(path) as journal:
        with pytest.raises(Exception, match="NoSuchFileException"), SafeWriter(spark, lake.table) as sw:
            path.unlink()
            spark.range(3).write.format("delta").mode("append").save(sw.table)
            sw.success()
        assert [entry.event for entry in journal.entries()] == ["journal_begun", "write_opened"]
    assert not path.exists()
    assert [document.status for document in lake.documents()] == ["rolled_back"]
