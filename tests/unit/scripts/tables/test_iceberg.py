"""An independent reader of Iceberg tables (pyiceberg) shows snapshots, rows, files and orphan files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.tables.delta import TableView
from scripts.tables.iceberg import view
from soal.testing.s3 import EmbeddedS3
from tests.unit.safewriter.tables.iceberg.bench import Bench, contents

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=["lake"]) as running:
        yield running


def test_a_table_is_seen_with_its_orphans(s3: EmbeddedS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The view has main's snapshots, rows and files, and data files that no snapshot names; or no table."""
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/lite.db", "init_catalog_tables": "false"}
    with monkeypatch.context() as patched:
        bench = Bench(tmp_path, patched)
        bench.lake.put("w/db/t/data/lost.parquet", b"parquet")
    for key, body in contents(bench.lake):
        s3.observer().put_object(Bucket="lake", Key=key, Body=body)
    assert view(s3.observer(), catalog, "lite.db.t") == TableView(1, 10, 1, ("w/db/t/data/lost.parquet",))
    assert view(s3.observer(), catalog, "lite.db.other") == TableView(-1, 0, 0, ())
