"""The campaign's random live cases come from a seed: mostly kills after the first data file, of every kind."""

from __future__ import annotations

import pytest

from tests.lab.campaign.live.chance import ChanceCase, chance_cases
from tests.lab.campaign.live.faults import KINDS, AtMoment, Deadline

THOUSAND = [*chance_cases(1, range(1, 1001))]


def told(case: ChanceCase) -> str:
    """All that was drawn."""
    fault = case.fault()
    drawn = {name: value for name, value in vars(fault).items() if name != "_timer"}
    return f"{case.name} {type(fault).__name__} {drawn} {fault.deadline_ms}"


def test_a_seed_draws_the_same_each_time() -> None:
    """And another one something else."""
    assert [told(one) for one in chance_cases(7, range(1, 30))] == [told(one) for one in chance_cases(7, range(1, 30))]
    assert told(next(chance_cases(7, range(1, 2)))) != told(next(chance_cases(8, range(1, 2))))


def test_each_fifth_write_also_runs_without_a_guard() -> None:
    """The same write, beside the guarded one, hit behind its data file: it makes no request of the guard's."""
    plain = [one for one in THOUSAND if not one.write.guarded]
    assert len(plain) == 200
    assert len(THOUSAND) == 1200
    for one in plain:
        (guarded,) = (other for other in THOUSAND if other.number == one.number and other.write.guarded)
        assert guarded.name.replace("guarded", "plain") == one.name
        fault = one.fault()
        assert isinstance(fault, Deadline) or (isinstance(fault, AtMoment) and fault._anchor == "data")


def test_most_faults_are_kills_behind_the_first_data_file() -> None:
    """Every kind is there, on both formats, and each statement."""
    faults = [one.fault() for one in THOUSAND]
    moments = [one for one in faults if isinstance(one, AtMoment)]
    assert {one._kind for one in moments} == {*KINDS}
    assert sum(one._kind == "kill" for one in moments) > 700
    assert sum(one._anchor == "data" for one in moments) > 700
    assert any(isinstance(one, Deadline) for one in faults)
    assert len({one.write.name for one in THOUSAND}) == 14


def test_a_name_says_all_of_its_case() -> None:
    """A row is enough to replay it."""
    for one in THOUSAND[:50]:
        assert told(ChanceCase.parse(one.name)) == told(one)


@pytest.mark.parametrize("name", ["random-1", "random-1-1-delta-upsert-guarded", THOUSAND[0].name + "-plain"])
def test_any_other_name_is_refused(name: str) -> None:
    """With an example of a right one."""
    with pytest.raises(ValueError, match="no case by chance; one is random-1-5-"):
        ChanceCase.parse(name)
