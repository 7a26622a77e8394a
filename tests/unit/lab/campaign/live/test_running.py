"""The campaign carries out sequences of live cases, resumes them, and repeats a case whose line proves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import pytest

from tests.lab.campaign.live import running
from tests.lab.campaign.live.cases import sequences
from tests.lab.campaign.record import CASES, CaseRecord
from tests.lab.results import read
from tests.unit.lab.campaign.test_report import record

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.campaign.live.cases import Case

ONE = next(sequences("delta append guarded torn"))


class Laboratory:
    """Carries out nothing; each write has three requests, and may end by itself at one."""

    dies_at = 0
    seen: list[int] = []  # noqa: RUF012 - one for all, as a test makes only one

    def __init__(self, s3: str) -> None:
        assert s3 == "moto"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def carry_out(self, case: Case) -> CaseRecord:
        self.seen.append(case.nth)
        if case.nth == self.dies_at:
            return record(case.name, "harness_error", hit=False)
        return record(case.name, hit=case.nth <= 3)


@pytest.fixture(autouse=True)
def laboratory(monkeypatch: pytest.MonkeyPatch) -> type[Laboratory]:
    monkeypatch.setattr(running, "Laboratory", Laboratory)
    monkeypatch.setattr(Laboratory, "seen", [])
    monkeypatch.setattr(Laboratory, "dies_at", 0)
    return Laboratory


def test_a_sequence_ends_with_the_first_write_that_is_not_hit(tmp_path: Path, laboratory: type[Laboratory]) -> None:
    """Its line is kept, too."""
    assert running._sequence(ONE, tmp_path, {}, None, "moto")
    assert laboratory.seen == [1, 2, 3, 4]
    assert [one.hit for one in read(tmp_path / CASES, CaseRecord)] == [True, True, True, False]


def test_a_write_that_ends_by_itself_ends_no_sequence(tmp_path: Path, laboratory: type[Laboratory]) -> None:
    """The requests behind it would never be tried."""
    laboratory.dies_at = 2
    assert not running._sequence(ONE, tmp_path, {}, None, "moto")
    assert laboratory.seen == [1, 2]


def test_what_is_done_is_not_done_again(tmp_path: Path, laboratory: type[Laboratory]) -> None:
    """Nor is a sequence that has come to its end."""
    done = {ONE.case(nth).name: nth <= 3 for nth in (1, 2)}
    assert running._sequence(ONE, tmp_path, done, None, "moto")
    assert laboratory.seen == [3, 4]
    laboratory.seen.clear()
    assert running._sequence(ONE, tmp_path, {**done, ONE.case(3).name: True, ONE.case(4).name: False}, None, "moto")
    assert laboratory.seen == []


def test_no_case_begins_when_the_time_is_over(tmp_path: Path, laboratory: type[Laboratory]) -> None:
    """The sequence is not finished then."""
    assert not running._sequence(ONE, tmp_path, {}, 0.0, "moto")
    assert laboratory.seen == []


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        (record("x"), True),
        (record("x", "gap"), True),
        (record("x", hit=False), True),
        (record("x", "gap", hit=False), False),
        (record("x", "harness_error", hit=False), False),
        (record("x", "harness_error"), False),
    ],
)
def test_a_case_is_carried_out_again_if_its_line_tells_nothing(line: CaseRecord, *, is_told: bool) -> None:
    """Whether its request was hit or not; a broken promise is told, and stays."""
    assert running._is_told(line) is is_told
