"""The report documents of `soal snapshot` fit their published schema, and their views cut long texts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from rich.table import Table
from rich.text import Text

import soal.snapshots.report
from handler.json_document import schema_text
from soal.snapshots.report import REPORTS, SnapshotReport
from soal.snapshots.views import snapshot_view
from tests.support.snapshots import Bucket, build


def test_the_published_schema_is_the_models() -> None:
    """If this fails: `python -m soal.snapshots.report > soal/snapshots/report.schema.json`."""
    published = Path(soal.snapshots.report.__file__).with_name("report.schema.json")
    assert published.read_text(encoding="utf-8") == schema_text(*REPORTS)


def test_a_text_of_megabytes_in_a_manifest_fills_no_terminal() -> None:
    """Long texts in any field of a manifest, and long lists, are truncated; `--json` has everything."""
    long = "x" * 1_000_000
    made = build(Bucket(), {1: b""}, "r", created=datetime(2026, 11, 1, tzinfo=UTC), num_dbs=1)
    manifest = replace(
        made,
        run_id=long,
        created_at=long,
        key_col=long,
        sharding={"strategy": long, "cel_expr": long, "routing_values": [long]},
        custom={long: long, **{str(number): number for number in range(1000)}},
        shards=tuple(replace(shard, min_key=long, max_key=long) for shard in made.shards),
    )
    report = SnapshotReport.of_manifest("s3://memory/kv", "ref", manifest, is_current=True)
    view = snapshot_view(report)
    cells = [cell for part in view.parts if isinstance(part, Table) for one in part.columns for cell in one.cells]
    texts = [part for part in (*view.parts, *cells) if isinstance(part, Text)]
    assert max(map(len, texts)) < 10_000
    assert len(texts) < 200
    assert view.document["custom"][long] == long
