"""One durable execution of a job that is longer than three timeouts: one answer, and each part once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.rule import Rule

if TYPE_CHECKING:
    from scripts.demonstration.stage import Demo

_PAUSE_S: Final = 5
_TIMEOUT_S: Final = 32
_ATTEMPTS_MIN: Final = 3


def play(demo: Demo, rows: int) -> None:
    """Play it, with a file of `rows` rows."""
    title = f"A backfill in ten parts, each of more than {_PAUSE_S} s, in a function of {_TIMEOUT_S} s"
    demo.console.print(Rule(title, align="left"))
    result = demo.execute(
        "accommodations_parts", "backfill", "--format", demo.format.name, timeout_s=_TIMEOUT_S, pause_s=_PAUSE_S
    )
    view = demo.table()
    states = [attempt.state.value for attempt in result.attempts]
    demo.claims.check("one execution gave one answer: SUCCESS", holds=result.state == "SUCCESS")
    demo.claims.check(
        f"it took {len(states)} attempts; each but the last ended before its deadline and had committed something",
        holds=len(states) >= _ATTEMPTS_MIN
        and states[:-1] == ["INCOMPLETE"] * (len(states) - 1)
        and all(attempt.committed for attempt in result.attempts),
    )
    demo.claims.check(f"each part is in the table once: the {rows:,} rows of the file", holds=view.rows == rows)
    demo.claims.check("every data file belongs to a version of the table", holds=not view.orphans)
