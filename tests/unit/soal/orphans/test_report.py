"""The report document of `soal orphans` on a Delta table is valid under its published schema."""

from __future__ import annotations

import json
from pathlib import Path

from jsonschema import Draft202012Validator

import soal.orphans.report
from handler.json_document import schema_text
from safewriter.objects import Upload
from soal.orphans.report import OrphanReport
from tests.unit.soal.orphans.bench import Bench, data_key


def test_the_published_schema_is_the_models() -> None:
    """If this fails: `python -m soal.orphans.report > soal/orphans/report.schema.json`."""
    published = Path(soal.orphans.report.__file__).with_name("report.schema.json")
    assert published.read_text(encoding="utf-8") == schema_text(OrphanReport)


def test_a_report_is_valid_under_its_schema() -> None:
    """A report with an example of everything is valid."""
    bench = Bench()
    bench.put(data_key(), "sub/_delta_log/0.json")
    bench.lake.begin_upload(Upload(data_key(), "1"))
    bench.ages()
    bench.world.job(deadline_ms=None).begin()
    document = bench.look().document()
    assert all(document[name] for name in ("orphans", "uploads", "openWrites", "otherTables"))
    Draft202012Validator(json.loads(schema_text(OrphanReport))).validate(document)
