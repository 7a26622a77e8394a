"""How Spark's own examples ended on the image's variants, from the newest kept run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts.examples.record import RESULTS, ExampleRecord
from scripts.results import read

if TYPE_CHECKING:
    from handler.spark.missing_dependencies import Variant

__all__ = ["KEPT", "examples"]

KEPT: Final = Path(__file__).resolve().parents[2] / "docs" / "measurements" / RESULTS
_VARIANTS: Final[tuple[Variant, ...]] = ("slim", "full")


def examples() -> str:
    """Return a row for each example, and how many ran."""
    records = {(record.example, record.variant): record for record in read(KEPT, ExampleRecord)}
    names = sorted({name for name, _ in records})
    ran = [sum(records[name, variant].state == "SUCCESS" for name in names) for variant in _VARIANTS]
    counted = f"Of {len(names)} examples {ran[0]} run on slim and {ran[1]} on full."
    rows = [f"| `{name}` | {' | '.join(_ended(records[name, variant]) for variant in _VARIANTS)} |" for name in names]
    return "\n".join([counted, "", "| example | slim | full |", "|---|---|---|", *rows])


def _ended(record: ExampleRecord) -> str:
    if record.state == "SUCCESS":
        return "runs"
    if record.needs is not None:
        return f"needs {record.needs}"
    if record.state == "TIMED_OUT":
        return "runs until the deadline ends it"
    said = (record.says or "").partition(":")[0].replace("|", "\\|")
    return said if record.is_usage else f"{record.state}: {said}"
