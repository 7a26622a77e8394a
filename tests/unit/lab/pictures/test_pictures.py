from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.lab.pictures.__main__ import FACTS as FACTS_FILE
from tests.lab.pictures.__main__ import PICTURES, pictures_of
from tests.lab.pictures.claims import claims_of
from tests.lab.pictures.facts import read_facts, write_facts
from tests.support.pictures import FACTS

if TYPE_CHECKING:
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
# Wider than the letters of the usual sans-serif fonts are on average, DejaVu's among them.
REGULAR_EM, BOLD_EM = 0.55, 0.61
ROWS = ("70,001 rows", "75,433 rows")
ORIGIN = ("0123456789ab", "8.7.6", "7.6.5", "6.5.4", "5.4.3")
NUMBERS = {
    "write.svg": (
        *("0", "1,111", "2,222", "3,333", "4,444", "5,555", "6,666"),
        *("5,432 rows", "8 S3 requests", "6.7 s", "2 data files, 4 KiB", "07.json", "17 orphan files"),
        *ROWS,
        *ORIGIN,
    ),
    "kill.svg": ("5,432 rows", "80,865 rows", "13 orphans", "17 orphans", *ROWS, *ORIGIN),
}
DRAWN = (pictures_of(FACTS), pictures_of(read_facts(PICTURES / FACTS_FILE)))
EACH = pytest.mark.parametrize(("drawn", "name"), [(drawn, name) for drawn in range(2) for name in NUMBERS])


@dataclass(frozen=True)
class Words:
    """A line of text with the room that it may need."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Words) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def parsed(picture: str) -> ET.Element:
    return ET.fromstring(picture)  # noqa: S314 - our own


def words_of(picture: str) -> list[Words]:
    return [_words(element) for element in parsed(picture).iter(f"{SVG}text")]


def _words(element: ET.Element) -> Words:
    text, size = element.text or "", float(element.attrib["font-size"])
    width = len(text) * size * (BOLD_EM if element.get("font-weight") == "bold" else REGULAR_EM)
    x, y = float(element.attrib["x"]), float(element.attrib["y"])
    left = x - {"start": 0, "middle": width / 2, "end": width}[element.attrib["text-anchor"]]
    return Words(text, left, y - size * 0.8, left + width, y + size * 0.2)


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_of_the_facts_stands_in_the_picture(name: str) -> None:
    """Nothing that was seen is left out, and nothing is drawn from elsewhere."""
    said = [words.text for words in words_of(DRAWN[0][name])]
    for number in NUMBERS[name]:
        assert any(number in text for text in said), number


@EACH
def test_no_text_leaves_the_picture_or_overlaps_another(drawn: int, name: str) -> None:
    """A reader can read each line, with any usual font."""
    root = parsed(DRAWN[drawn][name])
    words = words_of(DRAWN[drawn][name])
    for one in words:
        assert one.left >= 8, one
        assert one.right <= float(root.attrib["width"]) - 8, one
        assert one.top >= 8, one
        assert one.bottom <= float(root.attrib["height"]) - 8, one
    assert [(one.text, other.text) for one, other in combinations(words, 2) if one.overlaps(other)] == []


@EACH
def test_every_colour_is_there_for_light_and_dark(drawn: int, name: str) -> None:
    """No shape has a colour of its own; each class has one for both."""
    root = parsed(DRAWN[drawn][name])
    light, _, dark = (root.findtext(f"{SVG}style") or "").partition("@media (prefers-color-scheme:dark)")
    tones = {tone for element in root.iter() if (tone := element.get("class")) is not None}
    assert tones >= {"paper", "ink", "muted", "ok"}
    assert [tone for tone in tones if f".{tone}{{" not in light or f".{tone}{{" not in dark] == []
    painted = {value for element in root.iter() for key in ("fill", "stroke") if (value := element.get(key))}
    assert painted == {"currentColor"}


@pytest.mark.parametrize("name", NUMBERS)
def test_the_pictures_in_the_repository_are_drawn_from_the_facts_beside_them(name: str) -> None:
    """Who changes the drawing draws again: python -m tests.lab.pictures --redraw."""
    assert (PICTURES / name).read_text(encoding="utf-8") == DRAWN[1][name]


def test_the_facts_in_the_repository_bear_every_claim() -> None:
    """The pictures that are published are true of the runs that they name."""
    assert all(claim.holds for claim in claims_of(read_facts(PICTURES / FACTS_FILE)))


def test_facts_are_read_as_they_were_written(tmp_path: Path) -> None:
    """JSON keeps all of them."""
    write_facts(FACTS, tmp_path / "runs.json")
    assert read_facts(tmp_path / "runs.json") == FACTS
