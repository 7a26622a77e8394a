"""A guarded write belongs to the turn of its thread, its stream or the handler, and ambiguous ones are refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.coordination import current
from safewriter.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(current, "_TURNS", [])
    monkeypatch.setattr(current, "borrowed_turn", lambda: BORROWED)
    with ThreadPoolExecutor(1) as pool:
        current_thread.append(pool)
        yield
        current_thread.clear()


BORROWED: Any = SimpleNamespace(lock="lent")
current_thread: list[ThreadPoolExecutor] = []


@pytest.fixture
def nobody_lends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current, "borrowed_turn", lambda: None)


def turn(lock: str) -> Any:
    return SimpleNamespace(lock=lock)


def elsewhere(call: Any, *arguments: Any) -> Any:
    """Call it on another thread, always the same one."""
    return current_thread[0].submit(call, *arguments).result()


def test_without_a_turn_of_its_own_a_process_uses_its_handler_s() -> None:
    """Without one of its handler it has no turn."""
    assert current.turn_of_this_thread() is BORROWED


def test_a_thread_writes_in_its_own_turn(nobody_lends: None) -> None:
    """The turns of other threads do not matter."""
    own: Any = turn("one")
    current.begin(own)
    elsewhere(current.begin, turn("other"))
    assert [current.turn_of_this_thread()] == [own]
    current.end(own)
    assert getattr(current.turn_of_this_thread(), "lock", None) == "other"


def test_the_only_turn_of_a_process_is_that_of_all_its_threads(nobody_lends: None) -> None:
    """Spark calls `foreachBatch` on its own threads."""
    only = turn("one")
    current.begin(only)
    assert elsewhere(current.turn_of_this_thread) is only


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_a_write_that_could_belong_to_several_turns_is_refused(nobody_lends: None, *, is_elsewhere: bool) -> None:
    """Only one of the turns could fence it: in nested turns, and on a thread without a turn if there are several."""
    current.begin(turn("one"))
    current.begin(turn("two"))
    ask = partial(elsewhere, current.turn_of_this_thread) if is_elsewhere else current.turn_of_this_thread
    with pytest.raises(UsageError, match=r"a turn on one, two; it belongs to one, so pass it as turn="):
        ask()


def test_the_turn_of_a_stream_s_batch_is_that_stream_s_only(nobody_lends: None) -> None:
    """Other streams, and the main thread beside them, have no turn; a helper thread of the batch has the batch's."""
    batch = turn("one")
    elsewhere(current.begin, batch, "run-1")
    assert current.turn_of_this_thread("run-1") is elsewhere(current.turn_of_this_thread) is batch
    assert current.turn_of_this_thread("run-2") is current.turn_of_this_thread() is None


def test_the_handler_s_turn_counts_beside_one_of_the_script_s_own() -> None:
    """This also holds if another thread of the script has its own turn."""
    elsewhere(current.begin, turn("own"))
    with pytest.raises(UsageError, match="a turn on lent, own"):
        current.turn_of_this_thread()


def test_the_handler_s_turn_that_the_script_has_taken_up_is_one() -> None:
    """The script's coordinator returns the handler's turn."""
    current.begin(BORROWED)
    assert current.turn_of_this_thread() is BORROWED
