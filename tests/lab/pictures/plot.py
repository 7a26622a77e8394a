"""Matplotlib as every figure of the lab uses it: a width, a few tones, and reproducible files.

An SVG keeps its text as text, and each tone has a second colour for dark screens. An SVG in a page follows the reader's
system preference, not the page's own switch, so it has its own background.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final, Literal

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Patch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes

__all__ = ["COLOURS", "WIDTH", "Tone", "bare", "count", "figure", "legend", "panel", "png", "rows", "seconds", "svg"]

WIDTH: Final = 900
"""All pictures are that wide, in pixels."""

Tone = Literal["ink", "muted", "blue", "ok", "warn", "bad"]
COLOURS: Final[dict[Tone, str]] = {
    "ink": "#1f2328",
    "muted": "#59636e",
    "blue": "#0969da",
    "ok": "#1a7f37",
    "warn": "#9a6700",
    "bad": "#cf222e",
}
_DARK: Final = {
    "#ffffff": "#0d1117",
    COLOURS["ink"]: "#e6edf3",
    COLOURS["muted"]: "#9198a1",
    COLOURS["blue"]: "#4493f8",
    COLOURS["ok"]: "#3fb950",
    COLOURS["warn"]: "#d29922",
    COLOURS["bad"]: "#f85149",
}
_LEGEND_CHARACTERS: Final = 120
_DPI: Final = 72  # one point of a font is one pixel of a picture, and the unit of an SVG
_PNG_DPI: Final = 2 * _DPI

mpl.rcdefaults()  # ignore the machine's preferences
mpl.rcParams.update(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "soal",
        "font.size": 12,
        "text.color": COLOURS["ink"],
        "axes.edgecolor": COLOURS["muted"],
        "axes.spines.left": False,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "xtick.color": COLOURS["muted"],
        "xtick.labelsize": 10.5,
        "ytick.color": COLOURS["ink"],
        "ytick.major.size": 0,
        "legend.fontsize": 10.5,
        "legend.frameon": False,
        "legend.handlelength": 1,
    }
)


def figure(height: int, title: str, note: str, description: str, *, size: float = 20) -> Figure:
    """Begin a picture of `WIDTH` by `height` pixels. The description is its label, for readers who cannot see it."""
    made = Figure(figsize=(WIDTH / _DPI, height / _DPI), dpi=_DPI, facecolor="#ffffff")
    made.set_label(description)
    for words, y, look in (
        (title, 36, {"size": size, "weight": "bold"}),
        (note, 58, {"size": 11.5, "color": COLOURS["muted"]}),
    ):
        made.text(24 / WIDTH, 1 - y / height, words, **look)  # type: ignore[arg-type] # one dictionary for all of them
    return made


def panel(
    on: Figure, top: float, height: float, lanes: Iterable[str], *, left: float = 300, right: float = WIDTH - 90
) -> Axes:
    """Add axes at these pixels, with a lane for each name, the first at the top; bars go to y = 0, 1, 2 …."""
    names = [*lanes]
    axes = _axes(on, left, top, right, height)
    axes.set_facecolor("none")
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names)
    return axes


def bare(on: Figure, *, left: float = 0, top: float = 0, right: float = WIDTH, height: float | None = None) -> Axes:
    """Add invisible axes; their coordinates are pixels from the upper left corner."""
    whole = on.get_figheight() * _DPI
    axes = _axes(on, left, top, right, whole - top if height is None else height)
    axes.set_axis_off()
    axes.set_xlim(0, right - left)
    axes.set_ylim(whole - top if height is None else height, 0)
    return axes


def legend(on: Figure, entries: Sequence[tuple[str, Tone, float]]) -> None:
    """Explain the tones at the bottom: words, tone and opacity of each; long words in two columns."""
    handles = [Patch(color=COLOURS[tone], alpha=alpha, label=words) for words, tone, alpha in entries]
    columns = 2 if sum(len(words) for words, _, _ in entries) > _LEGEND_CHARACTERS else len(entries)
    on.legend(handles=handles, loc="lower left", ncols=columns, bbox_to_anchor=(16 / WIDTH, 0))


def svg(drawn: Figure) -> str:
    """Return the picture as XML."""
    written = io.StringIO()
    drawn.savefig(
        written, format="svg", metadata={"Date": None, "Creator": None, "Description": str(drawn.get_label())}
    )
    text = written.getvalue()
    for number, light in enumerate(_DARK):
        text = text.replace(light, f"var(--c{number}, {light})")
    dark = "".join(f"--c{number}:{colour};" for number, colour in enumerate(_DARK.values()))
    text = text.replace("<defs>", f"<style>@media (prefers-color-scheme:dark){{svg{{{dark}}}}}</style>\n <defs>", 1)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def png(drawn: Figure) -> bytes:
    """Return the picture as PNG: light, and twice the size."""
    written = io.BytesIO()
    drawn.savefig(written, format="png", dpi=_PNG_DPI)
    return written.getvalue()


def seconds(axes: Axes, ends_s: float) -> None:
    """Set the time axis's range, from 0, and its ticks."""
    axes.set_xlim(0, ends_s)
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(12, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter("{x:g} s")


def rows(number: int) -> str:
    """Return e.g. `22,248 rows`."""
    return f"{number:,} rows"


def count(number: int, name: str) -> str:
    """Return e.g. `1 data file`, `no data files`."""
    return f"{number or 'no'} {name}{'' if number == 1 else 's'}"


def _axes(on: Figure, left: float, top: float, right: float, height: float) -> Axes:
    whole = on.get_figheight() * _DPI
    return on.add_axes((left / WIDTH, 1 - (top + height) / whole, (right - left) / WIDTH, height / whole))
