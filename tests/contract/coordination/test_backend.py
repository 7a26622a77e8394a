"""The promises of each backend by itself (`safewriter.coordination.backend.Backend`)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from safewriter.coordination.backend import RecordChanged
from safewriter.coordination.backends.opening import open_backend
from safewriter.coordination.record import HISTORY_MAX, End, Holder, Job, OpenWrite, PastTurn, Record, Waiter
from safewriter.errors import SettingError
from tests.support.lock_arena import LOCK
from tests.support.lost_reply import LostReply

if TYPE_CHECKING:
    from safewriter.coordination.backend import Stored
    from tests.support.lock_arena import Arena

WRITE = OpenWrite("s3://writes/prefix", "key", 3)
FULL = Record(
    LOCK,
    token=2**40,
    tickets=7,
    completions=5,
    holder=Holder("job", "nonce", 2**40, 30.5, 1, "run", 9, (WRITE,)),
    queue=tuple(Waiter(f"job-{number}", f"nonce-{number}", number, 1, 0.5) for number in range(50)),
    unsettled=(WRITE,),
    jobs={"job": Job("other", registered=2**40), "other": Job()},
    history=tuple(PastTurn("job", number, 1, 2, End.EXPIRED, "run") for number in range(HISTORY_MAX)),
    servers=("http://somewhere",),
)


def test_a_record_comes_back_as_it_was_written(promising: Arena) -> None:
    """The record is complete, also with a full history and a long queue; an unused lock has none."""
    backend = promising.service.backend()
    assert backend.read(LOCK) is None

    written = backend.write(FULL, None)

    found = backend.read(LOCK)
    assert found == written
    assert found is not None
    assert found.record == FULL


def test_of_many_writers_one_wins(promising: Arena) -> None:
    """One wins of the writers that create a record, and of those that change the same version."""
    backend = promising.service.backend()

    def wins(after: Stored | None) -> bool:
        try:
            backend.write(Record(LOCK), after)
        except RecordChanged:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(wins, [None] * 8)) == 1
        assert sum(pool.map(wins, [backend.read(LOCK)] * 8)) == 1


def test_a_version_that_was_written_over_is_never_current_again(promising: Arena) -> None:
    """Even if the new record has the same content again."""
    backend = promising.service.backend()
    first = backend.write(Record(LOCK), None)
    second = backend.write(Record(LOCK, token=1), first)
    backend.write(Record(LOCK), second)

    with pytest.raises(RecordChanged):
        backend.write(Record(LOCK, token=9), first)


def test_a_write_whose_reply_was_lost_has_won(promising: Arena) -> None:
    """It reads the record back, finds its own change, and reports no conflict."""
    backend = promising.service.backend()
    stored = backend.write(Record(LOCK), None)
    for token in (1, 2):
        promising.service.lose(LostReply())
        stored = backend.write(replace(stored.record, token=token), stored)
        assert stored == backend.read(LOCK)


def test_a_creation_whose_reply_was_lost_has_won(promising: Arena) -> None:
    """A creation is like any other write."""
    backend = promising.service.backend()
    promising.service.lose(LostReply())

    stored = backend.write(Record(LOCK), None)

    assert stored == backend.read(LOCK)


def test_a_service_names_its_locks(promising: Arena) -> None:
    """Each lock is listed once."""
    backend = promising.service.backend()
    for lock in ("b", "a", "c"):
        backend.write(Record(lock), None)

    assert sorted(backend.locks()) == ["a", "b", "c"]


@pytest.mark.parametrize("uri", ["dynamodb://", "dynamodb://ab", "dynamodb://table/lock", "s3://", "redis://host"])
def test_a_uri_that_names_no_service_is_refused(uri: str) -> None:
    """The error names its key, before anything is opened."""
    with pytest.raises(SettingError, match=r"job\.coordinator\.backend: .* is none of"):
        open_backend(uri)
