"""The record of a probe, and the refusal of a server without a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.configuration import Configuration
from safewriter.coordination.probe import check, is_probed
from safewriter.errors import SettingError, UnsupportedError

if TYPE_CHECKING:
    from safewriter.coordination.backend import Stored
    from safewriter.coordination.record import Record


class Heedless(MemoryBackend):
    """A backend that ignores the conditions of writes."""

    def write(self, record: Record, after: Stored | None) -> Stored:
        return super().write(record, self.read(record.lock))


def test_no_lock_has_the_name_of_the_probed_record() -> None:
    """A probe would reset its token."""
    backend = MemoryBackend()
    check(backend)
    (name,) = backend.locks()
    assert is_probed(name)
    with pytest.raises(SettingError, match=r"lock\.name"):
        Configuration(lock=name, job="Ingestion")


def test_a_server_without_a_name_is_refused_in_words() -> None:
    """A service that is known to keep conditions has no name; an operator may still probe it."""
    with pytest.raises(UnsupportedError, match=r"^this server cannot keep a lock"):
        check(Heedless())
