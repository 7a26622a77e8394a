"""Small wrong scripts, on real Spark: each ends with its rows in the table, or with an error.

All run in one JVM of a process of their own, since Python has one Spark context. deltalake and pyiceberg read the
tables. `scripts/lab faults run --tier scripts` runs the same ones, and stores the results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab.campaign.workers import workers
from tests.lab.campaign.wrong.laboratory import WrongLaboratory
from tests.lab.campaign.wrong.listing import SCRIPTS, script_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.lab.campaign.record import ScriptRecord

pytestmark = pytest.mark.slow

_LABORATORY: list[WrongLaboratory] = []
"""The worker's laboratory."""


def _carry_out(name: str) -> ScriptRecord:
    if not _LABORATORY:
        _LABORATORY.append(WrongLaboratory("moto").__enter__())
    return _LABORATORY[0].carry_out(script_of(name))


def _end() -> None:
    while _LABORATORY:
        _LABORATORY.pop().__exit__()


@pytest.fixture(scope="module")
def carry_out() -> Iterator[Callable[[str], ScriptRecord]]:
    with workers(1) as pool:
        yield lambda name: pool.submit(_carry_out, name).result()
        pool.submit(_end).result()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if one.is_short else pytest.mark.matrix) for name, one in SCRIPTS.items()]
)
def test_a_script_ends_with_its_rows_or_with_an_error(carry_out: Callable[[str], ScriptRecord], name: str) -> None:
    """No row is lost or doubled on any attempt, and a right script succeeds."""
    found = carry_out(name)
    assert found.violations == [], (SCRIPTS[name].mistake, found)
