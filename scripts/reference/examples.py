"""How Spark's own examples ended on the image's variants, from the newest kept run of `scripts/lab examples`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from safewriter.parsing import parsed

__all__ = ["KEPT", "examples"]

KEPT: Final = Path(__file__).resolve().parents[2] / "docs" / "measurements" / "examples.jsonl"
_VARIANTS: Final = ("slim", "full")


def examples() -> str:
    """Return a row for each example, and how many ran."""
    lines = (parsed(line) for line in KEPT.read_text(encoding="utf-8").splitlines())
    records = {(line["example"], line["variant"]): line for line in lines}
    names = sorted({name for name, _ in records})
    ran = [sum(records[name, variant]["state"] == "SUCCESS" for name in names) for variant in _VARIANTS]
    counted = f"Of {len(names)} examples {ran[0]} run on slim and {ran[1]} on full."
    rows = [f"| `{name}` | {' | '.join(_ended(records[name, variant]) for variant in _VARIANTS)} |" for name in names]
    return "\n".join([counted, "", "| example | slim | full |", "|---|---|---|", *rows])


def _ended(record: dict[str, Any]) -> str:
    if record["state"] == "SUCCESS":
        return "runs"
    if record["needs"] is not None:
        return f"needs {record['needs']}"
    if record["state"] == "TIMED_OUT":
        return "runs until the deadline ends it"
    said = (record["says"] or "").partition(":")[0].replace("|", "\\|")
    return said if record["is_usage"] else f"{record['state']}: {said}"
