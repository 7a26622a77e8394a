"""The shapes of a `Canvas` as pixels: for those who cannot show SVG. Light, and twice the size of the SVG."""

from __future__ import annotations

import io
from typing import Final

from PIL import Image, ImageDraw, ImageFont

from tests.lab.pictures.svg import COLOURS, PAPER, WIDTH, Anchor, Tone

__all__ = ["Pixels"]

_SCALE: Final = 2
_ANCHORS: Final[dict[Anchor, str]] = {"start": "ls", "middle": "ms", "end": "rs"}


class Pixels:
    """A picture as `Canvas`, of rectangles, lines and text."""

    def __init__(self, height: int) -> None:
        self._image = Image.new("RGB", (WIDTH * _SCALE, height * _SCALE), PAPER[0])
        self._draw = ImageDraw.Draw(self._image)

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
        font = ImageFont.load_default(size * _SCALE)  # comes with Pillow, so every machine has it
        colour = COLOURS[tone][0]
        self._draw.text(
            (x * _SCALE, y * _SCALE),
            words,
            fill=colour,
            font=font,
            anchor=_ANCHORS[anchor],
            stroke_width=1 if bold else 0,
            stroke_fill=colour,
        )

    def box(self, x: float, y: float, width: float, height: float, *, tone: Tone, opacity: float = 1) -> None:
        """Fill a rectangle; `opacity` mixes its colour with the paper."""
        corners = (x * _SCALE, y * _SCALE, max(x + width, x + 1 / _SCALE) * _SCALE - 1, (y + height) * _SCALE - 1)
        self._draw.rectangle(corners, fill=_mixed(COLOURS[tone][0], opacity))

    def line(self, start: tuple[float, float], end: tuple[float, float], *, tone: Tone, width: float = 1) -> None:
        """Draw a straight line."""
        ends = tuple(number * _SCALE for number in (*start, *end))
        self._draw.line(ends, fill=COLOURS[tone][0], width=max(1, round(width * _SCALE)))

    def document(self) -> bytes:
        """Return the picture as PNG."""
        written = io.BytesIO()
        self._image.save(written, "PNG", optimize=True)
        return written.getvalue()


def _mixed(colour: str, opacity: float) -> tuple[int, int, int]:
    def channel(place: int) -> int:
        over, paper = (int(one[place : place + 2], 16) for one in (colour, PAPER[0]))
        return round(over * opacity + paper * (1 - opacity))

    return channel(1), channel(3), channel(5)
