"""The report of an experiment: its tables for a terminal, and a folder's report.html with tables and figures."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

from tests.lab.experiment.figures import figures
from tests.lab.experiment.plan import runs_of
from tests.lab.experiment.record import RUNS, RunRecord
from tests.lab.experiment.result_tables import is_broken, tables
from tests.lab.experiment.running import MANIFEST
from tests.lab.results import read

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from tests.lab.experiment.figures import Figure
    from tests.lab.experiment.result_tables import ResultTable

__all__ = ["Report", "report_of"]

_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:960px;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:.5rem 0}"
    "th,td{padding:.2rem .7rem;text-align:left;border-bottom:1px solid #8884}"
    "img{max-width:100%}.note{opacity:.75}"
)


@dataclass(frozen=True, slots=True)
class Report:
    """The tables as JSON and for a terminal, the files that hold them, and the number of broken promises.

    `missing`: the number of the plan's runs without a result.
    """

    document: dict[str, Any]
    tables: tuple[RenderableType, ...]
    files: tuple[Path, ...]
    violations: int
    missing: int


def report_of(folder: Path) -> Report:
    """Make the report of the finished runs. Raises `FileNotFoundError` if there are none."""
    records = read(folder / RUNS, RunRecord)
    if not records:
        raise FileNotFoundError(f"{folder} holds no runs")
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    versions = ", ".join(f"{name} {number}" for name, number in manifest["versions"].items())
    planned = sum(map(len, runs_of(manifest["plan"], scale=manifest["scale"], seed=manifest["seed"])))
    of = f"{len(records)} of {planned} runs"
    whence = f"{of}, {manifest['cores']} cores, commit {manifest['commit']}, {versions}"
    made = tables(records)
    drawn = figures(records, whence)
    files = [folder / "report.html", folder / "summary.json"]
    document = {"manifest": manifest, "runs": len(records), "planned": planned, "tables": [asdict(one) for one in made]}
    files[0].write_text(_page(whence, made, drawn), encoding="utf-8")
    files[1].write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    for figure in drawn:
        for path, body in (
            (folder / f"{figure.name}.svg", figure.svg.encode()),
            (folder / f"{figure.name}.png", figure.png),
        ):
            path.write_bytes(body)
            files.append(path)
    return Report(document, tuple(_shown(made)), tuple(files), sum(map(is_broken, records)), planned - len(records))


def _shown(made: Sequence[ResultTable]) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for one in made:
        table = Table(title=one.title, title_justify="left", box=None, header_style="dim")
        for name in one.header:
            table.add_column(name, overflow="fold")
        for row in one.rows:
            table.add_row(*row)
        parts += [table, Text(one.note, style="dim")] if one.note else [table]
    return parts


def _page(whence: str, made: Sequence[ResultTable], drawn: Sequence[Figure]) -> str:
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        f"<title>Kills between data and commit</title><style>{_STYLE}</style>",
        f"<h1>Kills between data and commit</h1><p class=note>{escape(whence)}</p>",
    ]
    for figure in drawn:
        picture = base64.b64encode(figure.svg.encode()).decode()
        parts.append(f"<p><img alt='{escape(figure.title)}' src='data:image/svg+xml;base64,{picture}'></p>")
    for one in made:
        head = "".join(f"<th>{escape(name)}</th>" for name in one.header)
        rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in one.rows)
        note = f"<p class=note>{escape(one.note)}</p>" if one.note else ""
        parts.append(f"<h2>{escape(one.title)}</h2><table><tr>{head}</tr>{rows}</table>{note}")
    return "\n".join([*parts, "</html>"]) + "\n"
