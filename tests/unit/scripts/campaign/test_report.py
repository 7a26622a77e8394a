from __future__ import annotations

import json
from pathlib import Path

from scripts.campaign import record as module
from scripts.campaign.record import CaseRecord
from scripts.campaign.report import counts


def record(case: str, *violations: str, hit: bool = True) -> CaseRecord:
    return CaseRecord.model_validate(
        {
            "case": case,
            "hit": hit,
            "operation": "PutObject",
            "key_class": "data",
            "acknowledged": False,
            "returncode": -9,
            "verdict": None,
            "landed": False,
            "orphans": 0,
            "violations": list(violations),
            "seconds": 1.0,
            "error": None,
        }
    )


def test_cases_are_counted_by_format_and_guard() -> None:
    """Those that were not hit only end a sequence; without a guard only wrong rows count."""
    found = counts(
        [
            record("delta-append-plain-after-01", "unacknowledged", "doubled"),
            record("delta-append-plain-after-02", "orphans", "unacknowledged"),
            record("delta-append-plain-after-03", "doubled", hit=False),
            record("delta-append-guarded-after-01"),
            record("delta-append-guarded-after-02", hit=False),
            record("iceberg-merge-guarded-torn-01", "orphans"),
        ]
    )
    assert [(one.table_format, one.guarded, one.cases, one.broken_cases) for one in found] == [
        ("delta", True, 1, 0),
        ("delta", False, 2, 1),
        ("iceberg", True, 1, 1),
    ]
    assert (found[1].broken["doubled"], found[1].broken["lost"]) == (1, 0)


def test_the_schema_beside_the_module_is_that_of_a_line() -> None:
    """`python -m scripts.campaign.record > scripts/campaign/record.schema.json` writes it."""
    kept = Path(module.__file__).with_name("record.schema.json")
    assert json.loads(kept.read_text(encoding="utf-8")) == CaseRecord.model_json_schema()
