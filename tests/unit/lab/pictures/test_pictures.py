"""The SVG pictures for the documents show every fact, legibly, in light and dark, and equal the kept ones."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from matplotlib.text import Text

from tests.lab.pictures.__main__ import FACTS as FACTS_FILE
from tests.lab.pictures.__main__ import PICTURES, pictures_of
from tests.lab.pictures.claims import claims_of
from tests.lab.pictures.facts import read_facts, write_facts
from tests.lab.pictures.plot import svg
from tests.support.pictures import FACTS

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

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


def texts_of(drawn: Figure) -> list[Text]:
    return [one for one in drawn.findobj(Text) if one.get_text() and one.get_visible()]


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_of_the_facts_stands_in_the_picture(name: str) -> None:
    """Nothing that was seen is left out, and nothing is drawn from elsewhere."""
    said = [one.get_text() for one in texts_of(DRAWN[0][name])]
    for number in NUMBERS[name]:
        assert any(number in text for text in said), number


@EACH
def test_no_text_leaves_the_picture_or_overlaps_another(drawn: int, name: str) -> None:
    """A reader can read each line."""
    picture = DRAWN[drawn][name]
    picture.draw_without_rendering()  # places the texts
    rooms = [(one.get_text(), one.get_window_extent()) for one in texts_of(picture)]
    for text, room in rooms:
        assert min(room.x0, room.y0) >= 8, text
        assert room.x1 <= picture.bbox.width - 8, text
        assert room.y1 <= picture.bbox.height - 8, text
    assert [(one, other) for (one, a), (other, b) in combinations(rooms, 2) if a.overlaps(b)] == []


@EACH
def test_every_colour_is_there_for_light_and_dark(drawn: int, name: str) -> None:
    """No shape has a colour of its own; each has one for both."""
    text = svg(DRAWN[drawn][name])
    dark = re.search(r"prefers-color-scheme:dark\)\{svg\{(.*?)\}\}", text)
    assert dark is not None
    used = set(re.findall(r"(?:fill|stroke): ([^;\"]+)", text)) - {"none"}
    assert len(used) > 4
    assert [one for one in used if f"{one.removeprefix('var(')[:4]}:#" not in dark[1]] == []


@pytest.mark.parametrize("name", NUMBERS)
def test_a_picture_is_the_same_each_time(name: str) -> None:
    """No date, and no identifier by chance."""
    assert svg(pictures_of(FACTS)[name]) == svg(pictures_of(FACTS)[name])


@pytest.mark.parametrize("name", NUMBERS)
def test_the_pictures_in_the_repository_are_drawn_from_the_facts_beside_them(name: str) -> None:
    """Who changes the drawing draws again: python -m tests.lab.pictures --redraw."""
    assert (PICTURES / name).read_text(encoding="utf-8") == svg(DRAWN[1][name])


def test_the_facts_in_the_repository_bear_every_claim() -> None:
    """The pictures that are published are true of the runs that they name."""
    assert all(claim.holds for claim in claims_of(read_facts(PICTURES / FACTS_FILE)))


def test_facts_are_read_as_they_were_written(tmp_path: Path) -> None:
    """JSON keeps all of them."""
    write_facts(FACTS, tmp_path / "runs.json")
    assert read_facts(tmp_path / "runs.json") == FACTS
