"""Faults at each mutating request of a job, in a JVM that has run another job before.

The real handler under the real emulator; deltalake and pyiceberg read the table. The handler settles the writes of a
failed job before it answers, and the retry writes them exactly once.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Literal

import pytest

from soal.testing.s3.rules import Match, Rule
from tests.faults.case import fault
from tests.faults.function_case import COMMIT, OF_THE_JOB, ROWS, TABLES, Function, Table, served
from tests.support.network_faults import Late

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.emulator, pytest.mark.slow, pytest.mark.timeout(1800)]

Phase = Literal["before", "torn", "after", "late", "lost", "frozen"]
FUNCTION_S = 60
"""A frozen job reaches this timeout; all others end long before."""


@pytest.fixture(scope="module")
def function(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Function]:
    with served(tmp_path_factory.mktemp("catalog"), FUNCTION_S) as found:
        yield found


def hit(function: Function, table: Table, phase: Phase, nth: int, match: Match = OF_THE_JOB) -> bool:
    """Let a request of the JVM's second job fail, check, and retry. Return whether there was such a request."""
    assert function.run(table, "first").state == "SUCCESS"
    assert table.rows() == ROWS
    late = Late(end=function.end)
    action = (
        Late(then="waits", end=lambda: function.end(signal.SIGSTOP))
        if phase == "frozen"
        else fault(phase, function.end, late)
    )
    rule = function.s3.wire.add(Rule(match, action, nth=nth))
    result = function.run(table, "second")
    function.s3.wire.clear_rules()
    assert result.warm_start
    if rule.hits == 0:
        assert result.state == "SUCCESS"
        return False
    # Incomplete: a frozen job's time is over, and its write is committed.
    assert result.state in ("FAILED", "SUCCESS", "TIMED_OUT", "INCOMPLETE"), result.state_details
    committed = any(write.status == "committed" for write in result.writes)
    assert table.rows() == ROWS * (2 if committed else 1), result.state_details
    for held in (late, action):
        if isinstance(held, Late):
            held.release()  # it lands after the verdict
    if phase == "frozen":
        function.end(signal.SIGCONT)  # as Lambda thaws a sandbox, before the next event
    assert table.rows() == ROWS * (2 if committed else 1), result.state_details
    retry = function.run(table, "second")
    assert retry.state == "SUCCESS", retry.state_details
    if result.state != "SUCCESS":
        assert not retry.warm_start
    elif phase == "lost":
        assert retry.warm_start
    assert table.rows() == 2 * ROWS
    table.check()
    return True


@pytest.mark.parametrize(
    ("lake_format", "phase"),
    [
        ("delta", "after"),
        ("iceberg", "after"),
        *(
            pytest.param(lake_format, phase, marks=pytest.mark.matrix)
            for lake_format in ("delta", "iceberg")
            for phase in ("torn", "late", "lost", "frozen")
        ),
        *(pytest.param(lake_format, "before", marks=pytest.mark.matrix) for lake_format in ("delta", "iceberg")),
    ],
)
def test_a_fault_at_the_commit_in_a_warm_machine(function: Function, lake_format: str, phase: Phase) -> None:
    """The verdict matches the table, and the retry writes the rest."""
    assert hit(function, TABLES[lake_format](function), phase, 1, COMMIT[lake_format])


@pytest.mark.matrix
@pytest.mark.parametrize("phase", ["before", "torn", "after", "late", "lost", "frozen"])
@pytest.mark.parametrize("lake_format", ["delta", "iceberg"])
def test_a_fault_at_every_boundary_in_a_warm_machine(
    function: Function, lake_format: str, phase: Phase, record_property: Callable[[str, object], None]
) -> None:
    """The enumeration ends by itself."""
    nth = 1
    while hit(function, TABLES[lake_format](function), phase, nth):
        nth += 1
    record_property("faults", nth - 1)
    assert nth > 6  # at least marker, document, data files, commit, verdict, and the deletions
