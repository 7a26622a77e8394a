"""One attempt of a script as the handler makes it, in this process: a journal, the run's variables, and the verdicts.

The supervisor that settles the writes and the judge that makes the state of it are the handler's own.
"""

from __future__ import annotations

import os
import threading
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from unittest.mock import patch

from handler.outcome.evidence import JobEvidence
from handler.outcome.outcome import judge
from handler.process.child import Ended
from safewriter.deadline import epoch_ms
from safewriter.record import journal
from safewriter.settings import Settings
from safewriter.settle.supervisor import Supervision

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from handler.outcome.state import Outcome

__all__ = ["Run", "attempted"]

_THREAD_S: Final = 60.0
_SETTLE_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Run:
    """A run: `variables` are the same for all its attempts. `folder`: of this machine, for the journals."""

    variables: Mapping[str, str]
    folder: Path


def attempted(run: Run, script: Callable[[], None]) -> Outcome:
    """Carry out one attempt, and judge it. Whatever the script raises is a part of the outcome."""
    run_id = uuid.uuid4().hex
    path = run.folder / f"journal-{run_id}"
    with (
        patch.dict(os.environ, {**run.variables, "SOAL_RUN_ID": run_id, "SOAL_JOURNAL": str(path)}),
        journal.Journal(path) as lines,
    ):
        began = epoch_ms()
        code = _exit_code(script, path)
        ended = Ended(code, None, None, began, epoch_ms(), 0, frozenset())
        supervision = Supervision(lines, Settings.from_environment(os.environ))
        return judge(
            JobEvidence(
                ended=ended,
                writes=supervision.settle(budget_ms=_SETTLE_MS),
                journal=lines.entries(),
                unsettled=supervision.doubt() or "",
                out_of_memory_kills=0,
                saw_java_out_of_memory=False,
                retry="a retry",
            )
        )


def _exit_code(script: Callable[[], None], path: Path) -> int:
    """Run a script as Python runs one: its threads have ended, too, when it has."""
    before = set(threading.enumerate())
    try:
        script()
        code = 0
    except SystemExit as end:
        code = 0 if end.code is None else end.code if isinstance(end.code, int) else 1
    except BaseException as error:  # noqa: BLE001 - whatever a script may end with, KeyboardInterrupt too
        code = getattr(error, "exit_code", 1)
        journal.append(path, "uncaught", type=type(error).__name__, message=str(error)[:4000], exitCode=code)
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon or thread.name == "safewriter-tidy":
            thread.join(_THREAD_S)
    journal.append(path, "python_exited", exitCode=code)
    return code
