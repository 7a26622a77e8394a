"""The gate in Java keeps blocks apart that begin and end at the same time on two threads of one JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.logstore.jvm import LogStore


def test_blocks_that_begin_and_end_at_the_same_time_lose_nothing_of_each_other(logstore: LogStore) -> None:
    """Two threads in step: each finds its gate, outliving statements are recognised, and a session has one block."""
    assert logstore.ask("race", rounds=5_000) == {
        "gate not found": 0,
        "leftover not known": 0,
        "two on one session": 0,
    }
