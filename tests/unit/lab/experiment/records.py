"""Records of runs for the tests of what is made of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.lab.experiment.record import RunRecord

if TYPE_CHECKING:
    from tests.lab.experiment.plan import Run

__all__ = ["record"]


def record(run: Run, **other: Any) -> RunRecord:
    """Return the record of a run that ended as it should; `other` fields differ."""
    cell = run.cell
    lost = bool(cell.kill_phase) and not cell.use_safe_writer
    undone = cell.use_safe_writer and (bool(cell.kill_phase) or cell.fails)
    usual = {
        "run_id": run.id,
        "table_format": cell.table_format,
        "dataset": cell.dataset,
        "kill_phase": cell.kill_phase,
        "use_safe_writer": cell.use_safe_writer,
        "outcome": "silent_loss" if lost else "rollback_success" if undone else "success",
        "duration_ms": 3000.0 if cell.kill_phase else 5000.0,
        "returncode": -9 if cell.kill_phase else 0,
        "timestamp": datetime(2026, 11, 23, tzinfo=UTC),
        "cell": cell.name,
        "fails": cell.fails,
        "truth": "silent_loss" if lost else "rollback_success" if undone else "success",
        "killed": bool(cell.kill_phase),
        "rows_before": 5,
        "rows_added": 0 if lost or undone else 100,
        "rows_expected": 100,
        "orphans": int(lost),
        "orphan_bytes": 1_000_000 * int(lost),
        "orphans_at_kill": int(bool(cell.kill_phase)),
        "orphan_bytes_at_kill": 1_000_000 * int(bool(cell.kill_phase)),
        "verdict": ("rolled_back" if undone else "committed") if cell.use_safe_writer else None,
        "settle_ms": 40.0 if cell.use_safe_writer else None,
        "session_ms": None if cell.kill_phase else 2000.0,
        "write_ms": None if cell.kill_phase else 2500.0,
        "end_ms": None if cell.kill_phase else 120.0,
        "gap_ms": None if cell.kill_phase else 150.0,
        "requests": [],
        "error": None,
    }
    return RunRecord.model_validate({**usual, **other})
