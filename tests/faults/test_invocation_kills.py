"""SIGKILL of a part of a cold invocation at each mutating request of its job: the driver, Java, or the handler. Or
SIGSTOP of the whole sandbox until the emulator's timeout ends it.

An answer is true. A caller without an answer retries with the same token, as Lambda does.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Literal, get_args

import pytest

from safewriter.deadline import epoch_ms
from safewriter.objects.s3 import S3ObjectStore, table_store
from safewriter.record.checkpoints import Checkpoints
from safewriter.settle.one_write import Action
from safewriter.settle.recovery import Recovery
from safewriter.settle.sweeper import Sweeper
from soal.testing.s3.rules import Kill, Match, Rule
from tests.faults.function_case import COMMIT, OF_THE_ATTEMPT, OF_THE_JOB, ROWS, TABLES, Function, Table, Who, served
from tests.support.lake import CHECKPOINTS
from tests.support.network_faults import Freeze
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from soal.testing.s3.rules import Effect

pytestmark = [pytest.mark.emulator, pytest.mark.slow, pytest.mark.timeout(3600)]

FUNCTION_S = 40
"""A stopped sandbox reaches this timeout; all others end long before."""
Killed = Literal["driver", "java", "handler"]
Moment = Literal["before", "after"]


@pytest.fixture(scope="module")
def function(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Function]:
    with served(tmp_path_factory.mktemp("catalog"), FUNCTION_S, SOAL_REUSE="off") as found:
        yield found


def sweep(function: Function) -> None:
    """Run the sweeper after all grace periods."""
    function.s3.wire.clock_ahead_s = 4 * FUNCTION_S
    checkpoints = Checkpoints(S3ObjectStore(function.s3.observer(), CHECKPOINTS))
    recovery = Recovery(checkpoints, table_store, clock=epoch_ms)
    found = Sweeper(checkpoints, recovery, epoch_ms, may_go_on=lambda: True).sweep()
    assert found.count(Action.FAILED, Action.UNREADABLE, Action.LEFT, Action.UNCLEAN) == 0, found.looks


def hit(function: Function, table: Table, action: Effect, *, match: Match = OF_THE_JOB, nth: int = 1) -> bool:
    """Inject a fault at a request, check, and call again. Return whether there was such a request."""
    function.s3.wire.clock_ahead_s = 0
    rule = function.s3.wire.add(Rule(match, action, nth=nth))
    answer = function.invoke(table, "job")
    function.s3.wire.clear_rules()
    assert until(lambda: function.s3.wire.is_quiet)
    if rule.hits == 0:
        assert function.result(answer).state == "SUCCESS"
        return False
    if function.is_told(answer):
        result = function.result(answer)
        committed = any(write.status == "committed" for write in result.writes)
        assert result.state == "FAILED", result.state_details
        assert table.rows() == (ROWS if committed else 0), result.state_details
    sweep(function)
    before = table.rows()
    assert before in (0, ROWS)
    retry = function.run(table, "job")
    assert retry.state == "SUCCESS", retry.state_details
    assert [write.status for write in retry.writes] == ["committed"]
    assert table.rows() == ROWS
    table.check()
    return True


def killed(function: Function, who: Who, moment: Moment) -> Effect:
    return Kill(moment, lambda: function.end(who=who))


@pytest.mark.parametrize(
    ("lake_format", "who", "moment"),
    [
        pytest.param(
            lake_format,
            who,
            moment,
            marks=() if (lake_format, who, moment) == ("delta", "handler", "after") else pytest.mark.matrix,
        )
        for lake_format in TABLES
        for who in get_args(Killed)
        for moment in get_args(Moment)
    ],
)
def test_a_kill_at_the_commit(function: Function, lake_format: str, who: Who, moment: Moment) -> None:
    """The surviving process reports the truth, and the retry writes the rest."""
    table = TABLES[lake_format](function)
    assert hit(function, table, killed(function, who, moment), match=COMMIT[lake_format])


@pytest.mark.matrix
@pytest.mark.parametrize("moment", get_args(Moment))
@pytest.mark.parametrize("who", get_args(Killed))
@pytest.mark.parametrize("lake_format", TABLES)
def test_a_kill_at_every_boundary(
    function: Function, lake_format: str, who: Who, moment: Moment, record_property: Callable[[str, object], None]
) -> None:
    """The enumeration ends by itself."""
    nth = 1
    match = OF_THE_ATTEMPT if who == "handler" else OF_THE_JOB
    while hit(function, TABLES[lake_format](function), killed(function, who, moment), match=match, nth=nth):
        nth += 1
    record_property("faults", nth - 1)
    assert nth > 6  # at least marker, document, data files, commit, verdict, and the deletions


@pytest.mark.matrix
@pytest.mark.parametrize("lake_format", TABLES)
def test_a_sandbox_that_stands_still_is_ended_by_the_timeout(function: Function, lake_format: str) -> None:
    """Handler and job are stopped, so neither reacts to the deadline; the commit has arrived, and its answer waits."""
    table = TABLES[lake_format](function)
    assert hit(
        function,
        table,
        Freeze(lambda: function.end(signal.SIGSTOP, "sandbox")),
        match=COMMIT[lake_format],
    )
