"""Random faults: each number has its write, its fault and its moment, drawn from the seed."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.lab.campaign.job import STATEMENTS
from tests.lab.campaign.live.cases import Write
from tests.lab.campaign.live.faults import AtMoment, Deadline
from tests.lab.experiment.plan import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.campaign.live.faults import Fault, Kind

__all__ = ["ChanceCase", "chance_cases"]

_NAME: Final = re.compile(r"random-(\d+)-(\d+)-(delta|iceberg)-(\w+)-(guarded|plain)")
_PLAIN_EVERY: Final = 5
"""Every fifth write also runs without a guard."""
_KINDS: Final[dict[Kind | None, int]] = {"kill": 70, "stop": 8, "memory": 6, "error": 4, "drop": 4, "slow": 2, None: 6}
"""The weights; None is a deadline."""
_ANCHORS: Final = {"data": (75, 250.0), "marker": (15, 2_000.0), "checkpoint": (10, 600.0)}
"""A moment's weight, and its maximum delay after the first request of the class, in milliseconds."""
_DEADLINES_MS: Final = (9_000, 20_000)


@dataclass(frozen=True, slots=True)
class ChanceCase:
    """Number `number` of a seed."""

    seed: int
    number: int
    write: Write

    @property
    def name(self) -> str:
        """Stable name, used to resume and replay."""
        return f"random-{self.seed}-{self.number}-{self.write.name}"

    def fault(self) -> Fault:
        """Draw the fault: the same one each time."""
        draw = _draw(self.seed, self.number)
        kind = draw.choices([*_KINDS], [*_KINDS.values()])[0]
        if kind is None:
            return Deadline(draw.randint(*_DEADLINES_MS))
        anchor = draw.choices([*_ANCHORS], [share for share, _ in _ANCHORS.values()])[0]
        if not self.write.guarded:
            anchor = "data"  # the only one of these requests that it makes
        return AtMoment(kind, anchor, draw.uniform(0, _ANCHORS[anchor][1]), draw.choice((500, 503)))

    @classmethod
    def parse(cls, name: str) -> ChanceCase:
        """Return the case of a name. Raises `ValueError` for any other text."""
        found = _NAME.fullmatch(name)
        if found is not None:
            seed, number = int(found[1]), int(found[2])
            for one in chance_cases(seed, range(number, number + 1)):
                if one.name == name:
                    return one
        raise ValueError(f"{name!r} is no case by chance; one is random-1-5-{_write(1, 5, guarded=True).name}")


def chance_cases(seed: int, numbers: range) -> Iterator[ChanceCase]:
    """Yield the cases with these numbers, every fifth also without a guard."""
    for number in numbers:
        yield ChanceCase(seed, number, _write(seed, number, guarded=True))
        if number % _PLAIN_EVERY == 0:
            yield ChanceCase(seed, number, _write(seed, number, guarded=False))


def _write(seed: int, number: int, *, guarded: bool) -> Write:
    draw = _draw(seed, -number - 1)
    table_format = draw.choice(FORMATS)
    return Write(table_format, draw.choice(STATEMENTS[table_format]), guarded)


def _draw(seed: int, number: int) -> random.Random:
    return random.Random(f"{seed} {number}")  # noqa: S311 - a plan, no secret
