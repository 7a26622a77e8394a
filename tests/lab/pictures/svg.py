"""A canvas for small pictures: shapes and text in a few tones, each with a colour for light and for dark screens."""

from __future__ import annotations

from typing import Final, Literal
from xml.etree import ElementTree as ET

__all__ = ["COLOURS", "PAPER", "WIDTH", "Anchor", "Canvas", "Tone"]

WIDTH: Final = 900
"""All pictures are that wide, in pixels."""

Tone = Literal["ink", "muted", "blue", "ok", "warn", "bad"]
Anchor = Literal["start", "middle", "end"]

_NAMESPACE: Final = "http://www.w3.org/2000/svg"
_HEAD_PX: Final = 7
PAPER: Final = ("#ffffff", "#0d1117")
"""For light and for dark screens, as `COLOURS`."""
COLOURS: Final[dict[Tone, tuple[str, str]]] = {
    "ink": ("#1f2328", "#e6edf3"),
    "muted": ("#59636e", "#9198a1"),
    "blue": ("#0969da", "#4493f8"),
    "ok": ("#1a7f37", "#3fb950"),
    "warn": ("#9a6700", "#d29922"),
    "bad": ("#cf222e", "#f85149"),
}


class Canvas:
    """A picture of `WIDTH` by `height` pixels. `title` and `description` are for those who do not see it."""

    def __init__(self, height: int, title: str, description: str) -> None:
        self._root = ET.Element(
            "svg",
            {
                "xmlns": _NAMESPACE,
                "viewBox": f"0 0 {WIDTH} {height}",
                "width": str(WIDTH),
                "height": str(height),
                "font-family": "sans-serif",
                "role": "img",
            },
        )
        ET.SubElement(self._root, "title").text = title
        ET.SubElement(self._root, "desc").text = description
        ET.SubElement(self._root, "style").text = _style()
        frame = {"x": "0.5", "y": "0.5", "width": str(WIDTH - 1), "height": str(height - 1), "rx": "8"}
        self._add("rect", {"class": "paper", **frame})

    def text(
        self,
        words: str,
        x: float,
        y: float,
        *,
        size: float = 12,
        tone: Tone = "ink",
        anchor: Anchor = "start",
        bold: bool = False,
    ) -> None:
        """Write one line; `y` is its base line."""
        weight = {"font-weight": "bold"} if bold else {}
        place = {"x": _number(x), "y": _number(y), "font-size": _number(size), "text-anchor": anchor}
        self._add("text", {"class": tone, "fill": "currentColor", **place, **weight}).text = words

    def box(self, x: float, y: float, width: float, height: float, *, tone: Tone, opacity: float = 1) -> None:
        """Fill a rectangle."""
        size = {"width": _number(width), "height": _number(height), "rx": "2"}
        fill = {"fill": "currentColor", "fill-opacity": _number(opacity)}
        self._add("rect", {"class": tone, "x": _number(x), "y": _number(y), **size, **fill})

    def line(
        self, start: tuple[float, float], end: tuple[float, float], *, tone: Tone, width: float = 1, dashes: str = ""
    ) -> None:
        """Draw a straight line."""
        ends = {"x1": _number(start[0]), "y1": _number(start[1]), "x2": _number(end[0]), "y2": _number(end[1])}
        dashed = {"stroke-dasharray": dashes} if dashes else {}
        self._add("line", {"class": tone, "stroke": "currentColor", "stroke-width": _number(width), **ends, **dashed})

    def arrow(self, start_x: float, end_x: float, y: float, *, tone: Tone, width: float = 1.5) -> None:
        """Draw a level arrow that ends at `end_x`."""
        back = _HEAD_PX if end_x < start_x else -_HEAD_PX
        self.line((start_x, y), (end_x + back, y), tone=tone, width=width)
        points = ((end_x, y), (end_x + back, y - _HEAD_PX / 2), (end_x + back, y + _HEAD_PX / 2))
        corners = " ".join(f"{_number(x)},{_number(at)}" for x, at in points)
        self._add("polygon", {"class": tone, "fill": "currentColor", "points": corners})

    def cross(self, x: float, y: float, *, tone: Tone, half: float = 5) -> None:
        """Draw a cross around a point."""
        self.line((x - half, y - half), (x + half, y + half), tone=tone, width=2.5)
        self.line((x - half, y + half), (x + half, y - half), tone=tone, width=2.5)

    def document(self) -> str:
        """Return the picture as XML."""
        ET.indent(self._root, " ")
        return ET.tostring(self._root, encoding="unicode") + "\n"

    def _add(self, name: str, attributes: dict[str, str]) -> ET.Element:
        return ET.SubElement(self._root, name, attributes)


def _style() -> str:
    # Pictures in a page see the reader's preference, not the page's own switch: so they bring their paper along.
    light, dark = (
        " ".join(
            [
                f".paper{{fill:{PAPER[mode]};stroke:{COLOURS['muted'][mode]};stroke-opacity:.4}}",
                *(f".{tone}{{color:{colours[mode]}}}" for tone, colours in COLOURS.items()),
            ]
        )
        for mode in (0, 1)
    )
    return f"{light} @media (prefers-color-scheme:dark){{{dark}}}"


def _number(value: float) -> str:
    return f"{value:g}"
