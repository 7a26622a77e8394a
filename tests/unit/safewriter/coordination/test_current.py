from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
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


BORROWED: Any = object()
current_thread: list[ThreadPoolExecutor] = []


def turn(lock: str) -> Any:
    return SimpleNamespace(lock=lock)


def elsewhere(call: Any, *arguments: Any) -> Any:
    """Call it on another thread, always the same."""
    return current_thread[0].submit(call, *arguments).result()


def test_without_a_turn_of_its_own_a_process_uses_its_handler_s() -> None:
    """Or none."""
    assert current.turn_of_this_thread() is BORROWED


def test_a_thread_writes_in_its_own_newest_turn() -> None:
    """When that has ended, in the one before."""
    first: Any = turn("one")
    second: Any = turn("two")
    current.begin(first)
    current.begin(second)
    elsewhere(current.begin, turn("other"))
    assert [current.turn_of_this_thread()] == [second]
    current.end(second)
    assert current.turn_of_this_thread() is first


def test_the_only_turn_of_a_process_is_that_of_all_its_threads() -> None:
    """Spark calls `foreachBatch` on threads of its own."""
    only = turn("one")
    current.begin(only)
    assert elsewhere(current.turn_of_this_thread) is only


def test_a_thread_that_could_mean_several_turns_is_refused() -> None:
    """The wrong one would fence nothing."""
    current.begin(turn("one"))
    current.begin(turn("two"))
    with pytest.raises(UsageError, match=r"turns on one, two, none of them on this thread; pass the write's turn="):
        elsewhere(current.turn_of_this_thread)
