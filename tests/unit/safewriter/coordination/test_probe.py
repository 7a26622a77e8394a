"""The probe refuses a lock server that ignores the conditions of writes, and runs once for each server."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from safewriter.coordination import probe
from safewriter.coordination.acquiring import Acquirer
from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.configuration import OnBlocked
from safewriter.errors import TurnBlockedError, UnsupportedError
from tests.unit.safewriter.coordination.bench import job

if TYPE_CHECKING:
    from safewriter.coordination.backend import Stored
    from safewriter.coordination.record import Record


class Server(MemoryBackend):
    """A server with a name, which may ignore the conditions of writes."""

    server = "http://here"

    def __init__(
        self, *, creates: bool = True, replaces: bool = True, one_wins: bool = True, reads: bool = True
    ) -> None:
        super().__init__()
        self._creates, self._replaces, self._one_wins, self._reads = creates, replaces, one_wins, reads
        self._winners: set[object] = set()
        self._counting = threading.Lock()
        self.probes = 0

    def read(self, lock: str) -> Stored | None:
        return super().read(lock) if self._reads else None

    def write(self, record: Record, after: Stored | None) -> Stored:
        with self._counting:
            self.probes += record.lock != "lock"
            now = super().read(record.lock)
            loses = now is not None and (after is None or now.version != after.version)
            second = loses and after is not None and after.version not in self._winners
            ignored = loses and (not self._creates if after is None else not self._replaces)
            if ignored or (second and not self._one_wins):
                self._winners.add(None if after is None else after.version)
                return super().write(record, now)
            return super().write(record, after)


def test_a_server_that_keeps_its_conditions_passes() -> None:
    """It also passes a second probe."""
    server = Server()
    probe.check(server)
    probe.check(server)


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        (Server(creates=False), "8 of 8 writers created one record"),
        (Server(replaces=False), "8 of 8 writers replaced one version"),
        (Server(one_wins=False), "2 of 8 writers replaced one version"),
        (Server(reads=False), "cannot be read"),
    ],
)
def test_a_server_that_does_not_is_refused(server: Server, problem: str) -> None:
    """The error says which condition failed, and that nothing was locked."""
    with pytest.raises(UnsupportedError, match=rf"http://here cannot keep a lock: .*{problem}.*Nothing was locked"):
        probe.check(server)


def test_a_server_that_creates_what_is_there_is_refused() -> None:
    """It is refused although only one of the concurrent writers has won."""

    class Later(Server):
        def write(self, record: Record, after: Stored | None) -> Stored:
            is_later = threading.current_thread() is threading.main_thread()
            return super().write(record, super().read(record.lock) if is_later and after is None else after)

    with pytest.raises(UnsupportedError, match="creates a record that is there, in spite of the condition"):
        probe.check(Later())


def test_a_server_that_was_refused_is_refused_again() -> None:
    """Each probe creates its own record."""
    server = Server(creates=False)
    for _ in range(2):
        with pytest.raises(UnsupportedError, match="writers created one record"):
            probe.check(server)


def test_a_server_that_replaces_what_has_changed_is_refused() -> None:
    """It is refused although only one of the concurrent writers has won."""

    class Late(Server):
        def write(self, record: Record, after: Stored | None) -> Stored:
            is_at_once = threading.current_thread() is not threading.main_thread()
            return super().write(record, after if is_at_once or after is None else super().read(record.lock))

    with pytest.raises(UnsupportedError, match="replaces a record that has changed, in spite of the condition"):
        probe.check(Late())


def test_a_lock_s_server_is_probed_once() -> None:
    """The record names the probed servers; after a move, the new server is probed."""
    server = Server()
    stored, _ = Acquirer(server, job(), "nonce").acquire()
    probes = server.probes
    assert probes > 0
    assert stored.record.servers == ("http://here",)
    Acquirer(server, job(max_wait_s=0), "other")._try()
    assert server.probes == probes
    server.server = "http://there"
    Acquirer(server, job(max_wait_s=0), "another")._try()
    assert server.probes > probes
    assert (server.read("lock") or pytest.fail("none")).record.servers == ("http://here", "http://there")


def test_a_lock_on_a_server_that_fails_its_probe_is_not_touched() -> None:
    """The lock's record is not created."""
    server = Server(replaces=False)
    with pytest.raises(UnsupportedError):
        Acquirer(server, job(), "nonce").acquire()
    assert server.read("lock") is None


def test_a_service_without_a_server_s_name_is_not_probed() -> None:
    """Its conditions are known to hold."""
    backend = Server()
    backend.server = ""
    Acquirer(backend, job(), "nonce").acquire()
    assert backend.probes == 0


def test_a_job_that_never_waits_notes_its_probe() -> None:
    """Even if the order blocks the job, its next attempt need not probe."""
    server = Server()
    for probes in (True, False):
        before = server.probes
        with pytest.raises(TurnBlockedError):
            Acquirer(server, job(predecessor="P", on_blocked=OnBlocked.RAISE), "nonce").acquire()
        assert (server.probes > before) is probes
    server.server = "http://there"
    for probes in (True, False):
        before = server.probes
        with pytest.raises(TurnBlockedError):
            Acquirer(server, job(predecessor="P", on_blocked=OnBlocked.RAISE), "nonce").acquire()
        assert (server.probes > before) is probes
