"""Answers of a service that are neither success nor silence: a race, a refusal, a missing record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.coordination import Turn
from safewriter.coordination.record import OpenWrite
from safewriter.errors import SettingError, TurnBlockedError, TurnLostError
from safewriter.objects.store import StoreError
from soal.testing.s3 import Match, Refuse, Reply, Request, Rule
from tests.support.lock_arena import LOCK
from tests.support.lock_services import S3, DynamoDB
from tests.support.lost_reply import LostReply
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from soal.testing.s3.rules import Effect
    from tests.support.lock_arena import Arena

LONG_S = 60.0
WRITE = OpenWrite("s3://writes", "key", 1)
PUT = Match(operations=frozenset({"PutObject"}), key="^locks/")
GET = Match(operations=frozenset({"GetObject"}), key="^locks/")


def before(change: Callable[[], object]) -> Effect:
    """Call `change` before a request is applied."""

    def act(request: Request) -> Reply:
        change()
        return request.apply()

    return act


@pytest.mark.parametrize("status", [409, 500, 503])
def test_a_race_that_s3_did_not_decide_is_no_defeat(on_s3: Arena, status: int) -> None:
    """The backend repeats the same request, of a grant, a note and a release."""
    service = on_s3.service
    assert isinstance(service, S3)
    on_s3.settle_server()
    rules = [service.server.wire.add(Rule(PUT, Refuse(status), nth=nth)) for nth in (1, 3, 5)]
    coordinator = on_s3.coordinator("job", lease_s=LONG_S)

    turn = coordinator.lock()
    turn.open_write(WRITE)

    assert turn.token == 1
    assert coordinator.unlock()
    assert [rule.hits for rule in rules] == [1, 1, 1]


def test_who_loses_the_race_for_a_free_lock_waits(on_s3: Arena) -> None:
    """412: another job has taken the lock between the read and the write, and the loser overwrites nothing."""
    service = on_s3.service
    assert isinstance(service, S3)
    on_s3.settle_server()
    winner, loser = on_s3.bystander("winner", lease_s=LONG_S), on_s3.coordinator("loser", lease_s=LONG_S)
    service.server.wire.add(Rule(PUT, before(winner.lock)))
    service.server.wire.add(Rule(PUT, before(winner.unlock), nth=2))

    assert loser.lock().token == 2

    loser.unlock()
    assert [past.job for past in on_s3.record().history] == ["winner", "loser"]


def test_a_record_that_vanishes_from_under_a_waiter_is_written_anew(on_s3: Arena) -> None:
    """404 is an answer, too: the waiter starts again with the current state."""
    service = on_s3.service
    assert isinstance(service, S3)
    on_s3.settle_server()
    service.server.wire.add(Rule(PUT, before(lambda: service.forget(LOCK))))

    assert on_s3.coordinator("job", lease_s=LONG_S).lock().token == 1


def test_a_job_that_may_not_write_is_told_at_once(on_s3: Arena) -> None:
    """Waiting does not help against a 403."""
    service = on_s3.service
    assert isinstance(service, S3)
    on_s3.settle_server()
    service.server.wire.add(Rule(PUT, Refuse(403), times=None))

    with pytest.raises(StoreError) as caught:
        on_s3.coordinator("job", lease_s=LONG_S).lock()

    assert caught.value.denied


def test_a_job_that_may_not_read_is_told_at_once(on_s3: Arena) -> None:
    """A denied record does not mean a free lock; the error names the missing rights."""
    service = on_s3.service
    assert isinstance(service, S3)
    on_s3.settle_server()
    service.server.wire.add(Rule(GET, Refuse(403), times=None))

    with pytest.raises(StoreError, match=r"denied, or not there.*s3:GetObject.*s3:ListBucket") as caught:
        on_s3.coordinator("job", lease_s=LONG_S).lock()

    assert caught.value.denied


def test_a_service_that_is_away_for_a_while_ends_no_turn(arena: Arena) -> None:
    """The holder retries until its lease ends, the waiter until its maximum wait."""
    arena.settle_server()
    holder = arena.coordinator("holder", lease_s=3)
    turn = holder.lock()
    fault = LostReply(outage=3)
    arena.service.lose(fault)
    assert until(lambda: fault.has_begun)
    arena.until_beat(3)

    with pytest.raises(TurnBlockedError, match="holder holds"):
        arena.coordinator("waiter", max_wait_s=0).lock()
    turn.check()

    assert holder.unlock()


def test_a_service_that_has_lost_its_memory_ends_the_turn(arena: Arena) -> None:
    """The new record counts turns anew; the earlier holder finds its record gone, and can open no write."""
    arena.settle_server()
    arena.bystander("first").nothing_to_do()
    old = arena.coordinator("old", lease_s=LONG_S)
    turn = old.lock()
    assert isinstance(turn, Turn)
    token = turn.token
    arena.service.forget(LOCK)

    with pytest.raises(TurnLostError, match="its record is gone"):
        turn.open_write(WRITE)

    assert turn.is_lost
    assert arena.number(arena.bystander("new").lock().token) == 1
    with pytest.raises(TurnLostError):
        turn.check()
    assert not old.unlock()
    assert turn.token == token


def test_an_older_token_is_not_taken_for_the_same_grant(arena: Arena) -> None:
    """A new record may have the same token: nonces distinguish the grants."""
    arena.settle_server()
    old = arena.coordinator("old", lease_s=LONG_S)
    turn = old.lock()
    arena.service.forget(LOCK)
    new = arena.bystander("new", lease_s=LONG_S)
    assert new.lock().token == turn.token

    with pytest.raises(TurnLostError, match="another job has it"):
        turn.open_write(WRITE)

    assert not old.unlock()
    assert new.unlock()


def test_a_table_that_is_not_there_is_named(on_dynamodb: Arena) -> None:
    """The error holds the commands that create the table; the job does not wait."""
    assert isinstance(on_dynamodb.service, DynamoDB)
    on_dynamodb.service.drop()

    with pytest.raises(SettingError, match=r"no DynamoDB table locks-\w+.*coordination=dynamodb.*create-table"):
        on_dynamodb.coordinator("job").lock()


def test_a_turn_outlives_a_restart_of_the_server(on_wire: Arena) -> None:
    """While the server is away the holder continues, but cannot open a write; on the same data everything continues."""
    on_wire.settle_server()
    service = on_wire.service
    assert isinstance(service, S3 | DynamoDB)
    on_wire.bystander("first").nothing_to_do()
    coordinator = on_wire.coordinator("job", lease_s=LONG_S)
    turn = coordinator.lock()

    with service.restarted():
        turn.check()
        with pytest.raises(StoreError):
            turn.open_write(WRITE)

    turn.open_write(WRITE)
    assert coordinator.unlock()
    assert [past.token for past in on_wire.record().history] == [1, 2]
    assert on_wire.bystander("next").lock().token == 3
