"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.table import Table
from rich.text import Text

from soal.console.document import document_of
from soal.console.view import View, styled

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. Jobs cannot work with a `fail`; a `warn` may be intended."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    remedy: str = ""


def finding(name: str, detail: str, remedy: str, *, is_well: bool) -> Finding:
    """Return a finding: `ok`, or `fail` with the remedy."""
    return Finding(name, "ok", detail) if is_well else Finding(name, "fail", detail, remedy)


def findings_view(findings: Sequence[Finding]) -> View:
    """Show one row for each finding, with the remedy below the detail; a remedy of several findings is shown once."""
    table = Table(box=None, show_header=False)
    first: dict[str, str] = {}
    for finding in findings:
        detail = Text(finding.detail)
        if finding.remedy in first:
            detail.append(f"\nTo do: as for {first[finding.remedy]}", style="bold")
        elif finding.remedy:
            first[finding.remedy] = finding.name
            detail.append(f"\nTo do: {finding.remedy}", style="bold")
        table.add_row(styled(finding.status), finding.name, detail)
    return View(document_of(findings), (table,))
