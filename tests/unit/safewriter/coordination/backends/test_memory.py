"""The lock service in memory changes a record by compare-and-swap, wakes waiters, and is shared by name."""

from __future__ import annotations

import threading

import pytest

from safewriter.coordination.backend import RecordChanged
from safewriter.coordination.backends.memory import MemoryBackend, by_name
from safewriter.coordination.record import Record
from tests.support.waiting import BUSY_S


def test_a_record_is_written_only_as_it_was_read() -> None:
    """It is neither created twice nor replaced after a change."""
    backend = MemoryBackend()
    assert backend.read("lock") is None
    first = backend.write(Record("lock"), None)
    with pytest.raises(RecordChanged):
        backend.write(Record("lock"), None)
    second = backend.write(Record("lock"), first)
    with pytest.raises(RecordChanged):
        backend.write(Record("lock", token=9), first)
    assert backend.read("lock") == second
    assert second.record.token == 0
    with pytest.raises(RecordChanged):
        MemoryBackend().write(Record("lock"), first)


def test_waiting_ends_with_a_change() -> None:
    """It ends at once if the record has already changed."""
    backend = MemoryBackend()
    seen = backend.write(Record("lock"), None)
    waiting = threading.Thread(target=backend.wait, args=(seen, BUSY_S))
    waiting.start()
    now = backend.write(Record("lock"), seen)
    waiting.join(BUSY_S)
    assert not waiting.is_alive()
    backend.wait(seen, float(BUSY_S))
    backend.wait(now, 0)
    backend.wait(None, 0)


def test_it_has_names_and_no_session() -> None:
    """All jobs of a process share the locks of a name."""
    backend = by_name("one")
    backend.write(Record("b"), None)
    backend.write(Record("a"), None)
    assert list(by_name("one").locks()) == ["a", "b"]
    assert list(by_name("two").locks()) == []
    backend.listen(lambda _: pytest.fail("told"))
    backend.close()
    assert backend.read("a") is not None
    assert backend.server == ""
