"""Tokens, taking over and races of locks on a real ZooKeeper server."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from safewriter.coordination import JobCoordinator
from safewriter.coordination.backend import RecordChanged, Stored
from safewriter.coordination.backends.zookeeper import ZooKeeperBackend
from safewriter.coordination.record import End, Record
from safewriter.coordination.transitions import grant, renew
from safewriter.coordination.turn import Turn
from safewriter.objects.store import StoreError
from tests.support.processes import Child
from tests.support.waiting import BUSY_S, until
from tests.support.zookeeper import end_session, start_zookeeper
from tests.support.zookeeper_locks import czxid, granted, job, read, released, waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.zookeeper_server import ZooKeeper


def test_the_token_is_the_czxid_of_the_holders_znode(backend: ZooKeeperBackend, lock: str) -> None:
    """A grant's token, as returned, as stored and as its job's registration, is the czxid of the holder's znode."""
    stored = granted(backend, lock, "one")
    token = czxid(backend, lock, "one")
    record = read(backend, lock).record
    assert (stored.record.token, record.token, record.job("Job").registered) == (token, token, token)
    assert record.holder is not None
    assert record.holder.token == token
    assert read(backend, lock) == stored


def test_a_reader_knows_the_token_that_its_holder_could_not_write(
    backend: ZooKeeperBackend, other: ZooKeeperBackend, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the holder's grant has landed but its token could not be written, readers take it from the holder's znode."""
    commit, commits = backend._commit, iter([True, False])

    def only_once(*arguments: object) -> object:
        if next(commits):
            return commit(*arguments)  # type: ignore[arg-type]
        raise StoreError("no answer")

    monkeypatch.setattr(backend, "_commit", only_once)
    token = granted(backend, lock, "one").record.token
    assert token == czxid(other, lock, "one") > 1
    assert read(other, lock).record.token == token
    assert other.write(renew(read(other, lock).record), read(other, lock)).record.token == token


def test_tokens_grow_over_release_and_session_end(
    backend: ZooKeeperBackend, other: ZooKeeperBackend, lock: str
) -> None:
    """Each grant has a higher token than all before it, after a release and after the end of the holder's session."""
    tokens = [granted(backend, lock, "one").record.token]
    released(backend, lock)
    tokens.append(granted(backend, lock, "two").record.token)
    end_session(backend)
    assert until(lambda: read(other, lock).is_alive is False)
    assert read(other, lock).record.token == tokens[-1]
    tokens.append(granted(other, lock, "three").record.token)
    assert tokens == sorted(set(tokens))


def test_tokens_grow_where_the_record_has_counted_further_than_the_ensemble(
    backend: ZooKeeperBackend, lock: str
) -> None:
    """A record that was copied from an ensemble with higher numbers keeps its tokens growing."""
    backend.write(Record(lock, token=10**15), None)
    assert granted(backend, lock, "one").record.token == 10**15 + 1
    assert read(backend, lock).record.token == 10**15 + 1


def test_a_turn_outlives_a_restart_of_the_server(
    tmp_path_factory: pytest.TempPathFactory, opened: Callable[[str], ZooKeeperBackend], lock: str
) -> None:
    """While the server is away, a turn's check waits; on the same data the session and tokens go on."""
    with start_zookeeper(tmp_path_factory.mktemp("restarted")) as server:
        coordinator = JobCoordinator(job(lock), opened(server.uri))
        turn = cast("Turn", coordinator.lock())
        checked, waits = threading.Event(), threading.Event()

        def check() -> None:
            turn.check()
            checked.set()

        checker = threading.Thread(target=check)

        def sleep(pause_s: float) -> None:
            waits.set()
            time.sleep(pause_s)

        turn._sleep = sleep
        server.kill()
        assert until(lambda: turn._suspended)
        checker.start()
        assert waits.wait(BUSY_S)
        assert not checked.is_set()
        server.start()
        assert checked.wait(BUSY_S)
        assert coordinator.unlock()
        next_turn = JobCoordinator(job(lock), opened(server.uri)).lock()
        assert next_turn.token > turn.token


def test_a_killed_holders_lock_is_taken_over(server: ZooKeeper, other: ZooKeeperBackend, lock: str) -> None:
    """When the session of a killed process ends, the next job has the turn, with a higher token."""
    module = "tests.integration.safewriter.coordination.holder"
    with Child(module, server.uri, lock, "2", environment={}) as holder:
        holder.expect("held")
        first = read(other, lock).record.token
        holder.kill()
        turn = JobCoordinator(job(lock), other).lock()
    assert turn.token > first
    assert [(past.token, past.end) for past in read(other, lock).record.history] == [(first, End.EXPIRED)]


@pytest.mark.parametrize("ends", ["session", "turn"])
def test_a_watch_wakes_a_waiter(backend: ZooKeeperBackend, other: ZooKeeperBackend, lock: str, ends: str) -> None:
    """A waiter with a poll interval of minutes gets its turn as soon as the holder releases it, or is gone."""
    holder = JobCoordinator(job(lock, "Holder"), backend)
    first = holder.lock()
    with waiting(JobCoordinator(job(lock, "Waiter", poll_s=2 * BUSY_S), other), backend) as found:
        if ends == "session":
            end_session(backend)
        else:
            assert holder.unlock()
    assert isinstance(found[0], Turn), found
    assert found[0].token > first.token


def test_only_the_next_waiter_wakes_at_the_end_of_a_turn(
    backend: ZooKeeperBackend, other: ZooKeeperBackend, lock: str
) -> None:
    """Who waits behind another waiter sleeps through the holder's end, and until that waiter's turn has ended."""
    granted(backend, lock, "holder")
    last = read(other, lock)
    waiter = threading.Thread(target=other.wait, args=(last, BUSY_S, "next"))
    waiter.start()
    watched = f"/locks/{lock}/next"
    assert until(lambda: watched in other._session._client._data_watchers)
    released(backend, lock)
    read(other, lock)  # an event would have come before this answer
    assert other._events == 0
    granted(backend, lock, "next")
    assert until(lambda: other._events == 1)
    assert until(lambda: watched in other._session._client._data_watchers)
    assert waiter.is_alive()
    released(backend, lock)
    waiter.join(BUSY_S)
    assert not waiter.is_alive()


def test_a_turn_that_is_over_before_the_watch_is_waited_for_no_more(
    backend: ZooKeeperBackend, other: ZooKeeperBackend, lock: str
) -> None:
    """A waiter whose neighbour had its turn between the reading and the watch asks again at once."""
    backend.write(Record(lock), None)
    last = read(other, lock)
    granted(backend, lock, "next")
    released(backend, lock)
    other.wait(last, 3600, "next")


def test_jobs_that_join_and_renewals_end_no_wait(backend: ZooKeeperBackend, other: ZooKeeperBackend, lock: str) -> None:
    """A change of the record between the reading and the watch is no reason to read it again."""
    stored = granted(backend, lock, "holder")
    last = read(other, lock)
    backend.write(renew(stored.record), stored)
    assert other._look(last, "next", BUSY_S) == (False, False)


def test_a_turn_that_ends_while_the_record_is_read_is_not_dead(
    backend: ZooKeeperBackend, other: ZooKeeperBackend, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader ends no turn that its holder has just given back, and a change by what it read is refused."""
    granted(backend, lock, "one")
    get = other._get

    def ended(*arguments: str) -> object:
        found = get(*arguments)
        released(backend, lock)
        return found

    monkeypatch.setattr(other, "_get", ended)
    late = read(other, lock)
    assert late.is_alive
    with pytest.raises(RecordChanged):
        other.write(renew(late.record), late)


def test_a_grant_that_its_process_has_forgotten_ends_with_its_lease(
    backend: ZooKeeperBackend, other: ZooKeeperBackend, lock: str
) -> None:
    """A grant without renewals ends with its lease, though the session of its process is alive."""
    first = granted(backend, lock, "forgotten", lease_s=1.0)
    turn = JobCoordinator(job(lock), other).lock()
    assert turn.token > first.record.token
    assert read(backend, lock).record.history[0].end is End.EXPIRED
    assert backend._session.ask(lambda client: [client.get_children_async(f"/locks/{lock}")]) == [turn.nonce]


def test_of_two_clients_one_wins(backend: ZooKeeperBackend, other: ZooKeeperBackend, lock: str) -> None:
    """Of two clients that change one version at the same time, exactly one wins: a first record, a grant, a renewal."""
    for round_ in range(20):
        before = backend.read(lock)
        record = Record(lock) if before is None else replace(before.record, holder=None)
        barrier = threading.Barrier(2)

        def take(
            which: ZooKeeperBackend, nonce: str, record: Record, before: Stored | None, barrier: threading.Barrier
        ) -> bool:
            barrier.wait(BUSY_S)
            try:
                which.write(grant(record, job(lock), nonce, "", 0), before)
            except RecordChanged:
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            wins = [
                pool.submit(take, which, f"{round_}-{name}", record, before, barrier)
                for name, which in (("a", backend), ("b", other))
            ]
        assert sorted(one.result() for one in wins) == [False, True]
    held = backend._session.ask(lambda client: [client.get_children_async(f"/locks/{lock}")])
    holder = read(backend, lock).record.holder
    assert holder is not None
    assert held == [holder.nonce]


def test_locks_are_listed(backend: ZooKeeperBackend, server: ZooKeeper, lock: str) -> None:
    """The names of all locks are listed, none where nothing was locked yet."""
    backend.write(Record(lock), None)
    assert lock in list(backend.locks())
    empty = ZooKeeperBackend(server.hosts, "no/locks/yet")
    assert list(empty.locks()) == []
    empty.close()
