"""Helpers that let the doctor examine a script's text, and return its findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from soal.doctor.script import examine_script

if TYPE_CHECKING:
    from pathlib import Path

    from handler.spark.missing_dependencies import Variant
    from soal.doctor.finding import Finding


def look(tmp_path: Path, text: str, variant: Variant = "slim") -> list[Finding]:
    """Return the findings in a script with this text."""
    path = tmp_path / "job.py"
    path.write_text(text, encoding="utf-8")
    return list(examine_script(path, variant))


def one(tmp_path: Path, text: str) -> Finding:
    (finding,) = look(tmp_path, text)
    return finding
