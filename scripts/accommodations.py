"""Made-up accommodations with the columns of the paper's data set (docs/experiment.md names the paper). A seed gives
the same rows on every machine.

Names contain characters that break careless readers: quotes, semicolons, backslashes, line breaks, non-ASCII letters.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, fields
from datetime import date, timedelta
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TextIO

ROWS: Final = 22_248
SEED: Final = 20_261_120

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _City:
    name: str
    country: str
    geonames_id: int
    timezone: str
    price_eur: int


_CITIES: Final = (
    _City("Berlin", "DE", 2950159, "Europe/Berlin", 67),
    _City("Köln", "DE", 2886242, "Europe/Berlin", 72),
    _City("Zürich", "CH", 2657896, "Europe/Zurich", 164),
    _City("Málaga", "ES", 2514256, "Europe/Madrid", 81),
    _City("São Paulo", "BR", 3448439, "America/Sao_Paulo", 44),
    _City("Kraków", "PL", 3094802, "Europe/Warsaw", 49),
    _City("İstanbul", "TR", 745044, "Europe/Istanbul", 38),
    _City("Αθήνα", "GR", 264371, "Europe/Athens", 58),
    _City("京都", "JP", 1857910, "Asia/Tokyo", 95),
    _City("New York", "US", 5128581, "America/New_York", 212),
)
_KINDS: Final = ("Entire home/apt", "Private room", "Shared room", "Hotel room")
_ADJECTIVES: Final = ("Bright", "Cosy", "Quiet", "Sunny", "Spacious", "Gemütliche", "Charming", "Très joli")
_NOUNS: Final = ("room", "loft", "flat", "studio", "Altbauwohnung", "apartment", "houseboat", "attic")
_EXTRAS: Final = (
    "with balcony",
    "near the park",
    '"like home"',
    "2 rooms; 60 m²",
    'the "Atelier"; top floor',
    "★ central ★",
    "back\\yard",
    "first line\nsecond line",
    "5' to the river",
)
_COMMON_EXTRAS: Final = 2
_RARE_EXTRA: Final = 0.15


@dataclass(frozen=True, slots=True)
class Accommodation:
    """One row. Price in euros per night; rating from 1 to 5 and satisfaction in percent, both empty without reviews."""

    id: int
    name: str
    price: int
    city: str
    country: str
    geonames_id: int
    timezone: str
    reviews: int
    rating: float | None
    satisfaction: int | None
    beds: int
    checkin: date
    city_id: int
    accommodation_type: str


def generate(rows: int = ROWS, *, seed: int = SEED) -> Iterator[Accommodation]:
    """Yield `rows` accommodations. With the same seed, fewer rows are a prefix of more rows."""
    random = Random(seed)  # noqa: S311 - data, not secrets
    number = 1_000
    for _ in range(rows):
        number += 1 + int(random.random() * 1_500)
        yield _row(random, number)


def write_csv(target: TextIO, rows: int = ROWS, *, seed: int = SEED) -> None:
    """Write a header and the rows, separated by semicolons. Open `target` with `newline=""`."""
    writer = csv.writer(target, delimiter=";", lineterminator="\n")
    names = [field.name for field in fields(Accommodation)]
    writer.writerow(names)
    writer.writerows(map(attrgetter(*names), generate(rows, seed=seed)))


def csv_bytes(rows: int = ROWS, *, seed: int = SEED) -> bytes:
    """Return the whole file, in UTF-8."""
    text = io.StringIO(newline="")
    write_csv(text, rows, seed=seed)
    return text.getvalue().encode()


def _row(random: Random, number: int) -> Accommodation:
    city_id = int(random.random() ** 1.6 * len(_CITIES))
    city = _CITIES[city_id]
    reviews = int(random.random() ** 4 * 400)
    rating = round(5 - random.random() ** 2 * 3, 2) if reviews else None
    return Accommodation(
        id=number,
        name=_name(random),
        price=max(9, round(city.price_eur * (0.4 + 2.4 * random.random() ** 2))),
        city=city.name,
        country=city.country,
        geonames_id=city.geonames_id,
        timezone=city.timezone,
        reviews=reviews,
        rating=rating,
        satisfaction=None if rating is None else round(rating * 20),
        beds=1 + int(random.random() ** 2 * 6),
        checkin=date(2026, 1, 1) + timedelta(days=int(random.random() * 365)),
        city_id=city_id,
        accommodation_type=_pick(random, _KINDS),
    )


def _name(random: Random) -> str:
    extras = _EXTRAS if random.random() < _RARE_EXTRA else _EXTRAS[:_COMMON_EXTRAS]
    return f"{_pick(random, _ADJECTIVES)} {_pick(random, _NOUNS)} {_pick(random, extras)}"


def _pick(random: Random, choices: Sequence[_T]) -> _T:
    # Only Random.random() is guaranteed to give the same numbers in every version of Python.
    return choices[int(random.random() * len(choices))]
