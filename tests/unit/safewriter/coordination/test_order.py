"""The rules of order decide whether a job may have its turn, with a test for each row of the guide's table."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from safewriter.coordination import order
from safewriter.coordination.configuration import Configuration, Edge, FirstRun, Mode
from safewriter.coordination.order import check_startable, obstacle
from safewriter.coordination.record import JOBS_MAX, End, Job, Record
from safewriter.coordination.transitions import end, goes_first, grant, join
from safewriter.errors import SettingError
from tests.unit.safewriter.coordination.bench import job

if TYPE_CHECKING:
    from collections.abc import Iterable

GUIDE = Path(__file__).parents[4] / "docs" / "guides" / "coordination.md"
SOFT, LAGGED, STRICT = {"edge": Edge.SOFT}, {"edge": Edge.LAGGED, "lag": 2}, {"mode": Mode.STRICT}
FREE = Record("lock")


def after(name: str, predecessor: str, **more: object) -> Configuration:
    return job(name, predecessor=predecessor, **more)


def had(record: Record, *turns: Configuration, how: End = End.COMPLETED) -> Record:
    """Let jobs have turns, in or out of order."""
    for one in turns:
        record = end(grant(record, one, "n", "", 0), how, 0)
    return record


def may(record: Record, configuration: Configuration) -> bool:
    name = configuration.job
    return obstacle(record, name, record.ordered(configuration)) is None


def waits(record: Record, *configurations: Configuration) -> Record:
    for one in configurations:
        record = join(record, one, f"waits-{one.job}", 0)
    return record


A = job("A")
B, SOFT_B, LAGGED_B, STRICT_B = (after("B", "A", **more) for more in ({}, SOFT, LAGGED, STRICT))


def test_row_1_a_job_without_a_predecessor_may_run() -> None:
    """The turns of other jobs do not matter."""
    assert may(FREE, A)
    assert may(had(FREE, A, A), A)


@pytest.mark.parametrize("more", [{}, STRICT])
def test_row_2_a_first_run_needs_no_predecessor(more: dict[str, object]) -> None:
    """This holds until the job has completed a turn."""
    first = after("B", "A", first_run=FirstRun.RUN, **more)
    assert may(FREE, first)
    assert may(had(FREE, first, how=End.FAILED), first)
    assert not may(had(FREE, first), first)


@pytest.mark.parametrize("how", [End.COMPLETED, End.NOTHING])
def test_row_3_a_completed_predecessor_lets_a_job_run(how: End) -> None:
    """Nothing to do counts as completed; the job may also run again if it did not complete its turn."""
    record = had(FREE, A, how=how)
    assert may(record, B)
    assert may(had(record, B, how=End.FAILED), B)


def test_row_3_a_job_that_was_down_catches_up() -> None:
    """Each turn that its predecessor completed meanwhile gives it one."""
    record = had(FREE, A, B, *[A] * 5)
    for _ in range(5):
        assert may(record, B)
        record = had(record, B)
    assert not may(record, B)


def test_row_3_a_lagged_job_has_several_turns_for_each_of_its_predecessor() -> None:
    """They add up."""
    record = had(FREE, LAGGED_B, A, A)
    for _ in range(4):
        assert may(record, LAGGED_B)
        record = had(record, LAGGED_B)
    assert not may(record, LAGGED_B)


@pytest.mark.parametrize("b", [B, LAGGED_B])
@pytest.mark.parametrize("how", [End.FAILED, End.EXPIRED, End.FORCED])
def test_row_4_a_predecessor_that_did_not_complete_blocks(how: End, b: Configuration) -> None:
    """It blocks at first and after the job's own last turn: a turn without completion does not count."""
    assert not may(FREE, b)
    assert not may(had(FREE, A, how=how), b)
    assert not may(had(had(FREE, A, *[b] * b.lag), A, how=how), b)


def test_row_4_a_job_that_is_new_has_the_turns_of_one_completion() -> None:
    """Its predecessor may have completed many before; so it is behind another predecessor than before."""
    seen = had(FREE, A, A, A, job("C"), job("C"), B)
    assert not may(seen, B)
    other = after("B", "C")
    assert may(seen, other)
    assert not may(had(seen, other), other)


@pytest.mark.parametrize("completed", [0, 1])
def test_row_4_a_first_run_takes_the_turns_of_one_completion(completed: int) -> None:
    """Whether its predecessor has completed one or not."""
    first = after("B", "A", edge=Edge.LAGGED, lag=2, first_run=FirstRun.RUN)
    record = had(FREE, *[A] * completed, first)
    assert may(record, first)
    assert not may(had(record, first), first)


def test_row_5_a_soft_predecessor_that_waits_goes_first() -> None:
    """The order of arrival does not matter."""
    record = waits(FREE, SOFT_B, A)
    assert not may(record, SOFT_B)
    waiter = goes_first(record, SOFT_B, "waits-B")
    assert waiter is not None
    assert waiter.job == "A"
    assert goes_first(record, A, "waits-A") is None


def test_row_6_a_soft_predecessor_that_does_not_wait_or_may_not_run_does_not_block() -> None:
    """The job runs if its predecessor does not wait, or is blocked itself."""
    blocked = after("A", "nobody")
    assert may(FREE, SOFT_B)
    assert may(had(FREE, SOFT_B), SOFT_B)
    assert may(waits(FREE, SOFT_B, blocked), SOFT_B)


@pytest.mark.parametrize("names", ["AB", "ABC", "ABCD"])
def test_row_6_in_a_ring_of_soft_edges_tickets_decide(names: str) -> None:
    """All of them wait for each other: without a first job none would ever run."""
    ring = [after(name, names[number - 1], **SOFT) for number, name in enumerate(names)]
    for order_ in permutations(ring):
        record = waits(FREE, *order_)
        firsts = [one.job for one in ring if may(record, one) and goes_first(record, one, f"waits-{one.job}") is None]
        assert firsts == [order_[0].job]


@pytest.mark.parametrize("is_ring", [False, True])
def test_row_5_in_a_long_line_of_soft_edges_every_other_job_may_run(
    monkeypatch: pytest.MonkeyPatch, *, is_ring: bool
) -> None:
    """From its end, whatever that is; and each job of the line is looked at a few times only."""
    names = [f"job-{number}" for number in range(JOBS_MAX)]
    first = after("head", names[0], **SOFT) if is_ring else job("head")
    line = [first, after(names[0], "head", **SOFT)]
    line += [after(name, before, **SOFT) for name, before in zip(names[1:], names, strict=False)]
    record = waits(FREE, *line[:-1])
    asked: list[str] = []
    look = Record.job

    def counted(self: Record, name: str) -> Job:
        asked.append(name)
        return look(self, name)

    monkeypatch.setattr(Record, "job", counted)

    able = [may(record, one) for one in line]

    both = [True, True] if is_ring else [True, False]
    assert able == (both + [not is_ring, is_ring] * JOBS_MAX)[: len(line)]
    assert len(asked) < 5 * len(line) ** 2


def test_row_6_a_job_outside_of_a_ring_defers_to_it() -> None:
    """The ring's own jobs may run, so the job's predecessor goes first."""
    record = waits(FREE, after("D", "A", **SOFT), after("A", "B", **SOFT), after("B", "A", **SOFT))
    assert not may(record, after("D", "A", **SOFT))


def test_row_5_a_first_run_in_a_ring_of_soft_edges_defers_to_nobody() -> None:
    """Row 2 takes precedence."""
    record = waits(FREE, after("B", "A", **SOFT), after("A", "B", first_run=FirstRun.RUN, **SOFT))
    assert may(record, after("A", "B", first_run=FirstRun.RUN, **SOFT))
    assert not may(record, after("B", "A", **SOFT))


def test_row_7_in_the_ring_a_job_follows_its_predecessor() -> None:
    """It runs right after its predecessor, once that has completed."""
    first = after("A", "B", first_run=FirstRun.RUN, **STRICT)
    assert may(had(FREE, first), STRICT_B)
    assert not may(had(FREE, first, how=End.EXPIRED), STRICT_B)


def test_row_8_in_the_ring_a_job_redoes_its_own_turn() -> None:
    """It may repeat a turn that it did not complete."""
    first = after("A", "B", first_run=FirstRun.RUN, **STRICT)
    assert may(had(had(FREE, first), STRICT_B, how=End.FAILED), STRICT_B)


def test_row_9_in_the_ring_nobody_else_may_run() -> None:
    """A job may not run before the first turn, nor twice in a row."""
    first = after("A", "B", first_run=FirstRun.RUN, **STRICT)
    assert not may(FREE, STRICT_B)
    assert not may(had(FREE, first, STRICT_B), STRICT_B)
    assert not may(waits(FREE, STRICT_B), STRICT_B)


def test_rows_7_to_9_speak_of_the_ring_s_own_jobs() -> None:
    """A job outside the ring, or one that has left it, may have a turn in between."""
    a, b, c = (after(name, before, **STRICT) for name, before in ("AC", "BA", "CB"))
    first = after("A", "C", first_run=FirstRun.RUN, **STRICT)
    for outsider in (job("vacuum"), after("old", "B", **STRICT)):
        record = had(FREE, first, b, outsider)
        assert [may(record, one) for one in (a, b, c)] == [False, False, True]


# -- the table itself ------------------------------------------------------------------------------------------------


def rows(text: str) -> list[list[str]]:
    """Return the cells of the numbered rows."""
    found = re.findall(r"^\| (\d+) +\|(.+)\|$", text, flags=re.MULTILINE)
    return [[number, *(cell.strip().replace("`", "") for cell in cells.split("|"))] for number, cells in found]


def test_guide_and_code_have_the_same_rows() -> None:
    """Their rows are equal word for word."""
    told = rows(order.__doc__ or "")
    assert rows(GUIDE.read_text(encoding="utf-8")) == told
    assert [row[0] for row in told] == [str(number) for number in range(1, len(told) + 1)]


def test_each_row_has_a_test() -> None:
    """A test's name has the number of its row."""
    named = {
        int(found) for found in re.findall(r"^def test_row_(\d+)_", Path(__file__).read_text(), flags=re.MULTILINE)
    }
    assert named == {int(row[0]) for row in rows(order.__doc__ or "")}


# -- a ring that no job can start ------------------------------------------------------------------------------------


def ring(**first: object) -> Iterable[Configuration]:
    return after("A", "C", **first), after("B", "A"), after("C", "B")


@pytest.mark.parametrize("more", [{}, LAGGED, STRICT])
def test_a_ring_that_nobody_can_start_is_refused(more: dict[str, object]) -> None:
    """The job that closes the ring is refused, with the key to change."""
    record = waits(FREE, after("A", "C", **more), after("B", "A", **more))
    with pytest.raises(SettingError, match=r"^job\.coordinator\.first\.run: .*C after B after A after C"):
        check_startable(record, after("C", "B", **more))


def test_a_ring_that_somebody_can_start_is_accepted() -> None:
    """A first run, a soft edge, a completed turn, or an unknown job lets the ring start."""
    for first in ({"first_run": FirstRun.RUN}, SOFT):
        a, b, c = ring(**first)
        check_startable(waits(FREE, a, b), c)
    a, b, c = ring()
    check_startable(waits(FREE, b), c)
    check_startable(waits(FREE, job("A"), b), c)
    check_startable(had(waits(FREE, a, b), job("A")), c)


def test_a_job_behind_a_ring_is_not_the_one_that_closes_it() -> None:
    """It only waits; the error goes to the ring's own job."""
    record = replace(waits(FREE, after("A", "B")), jobs={n: FREE.ordered(after(n, o)) for n, o in ("AB", "BA")})
    check_startable(record, after("D", "A"))
