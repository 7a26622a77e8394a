"""The campaign's live cases cover every write and fault, guarded and plain, and each is named completely."""

from __future__ import annotations

import pytest

from tests.lab.campaign.job import STATEMENTS
from tests.lab.campaign.live.cases import Case, sequences
from tests.lab.campaign.live.faults import PHASES


def test_each_write_is_hit_in_each_way_guarded_and_plain() -> None:
    """Of both formats."""
    names = [one.name for one in sequences()]
    assert len(names) == len(set(names)) == sum(map(len, STATEMENTS.values())) * len(PHASES) * 2


@pytest.mark.parametrize("nth", [1, 9, 10, 59])
def test_a_name_says_all_of_its_case(nth: int) -> None:
    """A row is enough to replay it."""
    for one in sequences():
        assert Case.parse(one.case(nth).name) == Case(one, nth)


@pytest.mark.parametrize(
    "name", ["", "delta-append-guarded-torn", "delta-append-guarded-torn-00", "delta-x-plain-torn-01"]
)
def test_any_other_name_is_refused(name: str) -> None:
    """With an example of a right one."""
    with pytest.raises(ValueError, match="delta-append-guarded-torn-03"):
        Case.parse(name)


def test_words_select() -> None:
    """All of them must be there, and none with a minus."""
    assert [one.name for one in sequences("delta append torn")] == [
        "delta-append-guarded-torn",
        "delta-append-plain-torn",
    ]
    assert {one.write.guarded for one in sequences("-plain")} == {True}
    assert list(sequences("hudi")) == []
