from __future__ import annotations

from pathlib import Path

import soal.snapshots.report
from soal.console.document import schema_text
from soal.snapshots.report import REPORTS


def test_the_published_schema_is_the_models() -> None:
    """If this fails: `python -m soal.snapshots.report > soal/snapshots/report.schema.json`."""
    published = Path(soal.snapshots.report.__file__).with_name("report.schema.json")
    assert published.read_text(encoding="utf-8") == schema_text(*REPORTS)
