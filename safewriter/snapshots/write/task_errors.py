"""Errors of tasks: Spark sends only their text to the driver, where this module restores the error.

The task adds the error as JSON to its traceback, as a line of its own, by Python's `add_note`.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from safewriter.parsing import parsed
from safewriter.snapshots.errors import MissingPackageError, SnapshotError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["errors_for_driver", "errors_of_tasks"]

_MISSING: Final = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_LINE: Final = re.compile(r"^soal-task-error: (\{.*\})$", re.MULTILINE)


@contextmanager
def errors_for_driver() -> Iterator[None]:
    """Add a `SnapshotError` that leaves a task to its own text, for `errors_of_tasks`."""
    try:
        yield
    except SnapshotError as error:
        members = {name: value for name, value in vars(error).items() if name != "__notes__"}
        fields = {"type": type(error).__name__, "message": str(error), "members": members}
        error.add_note(f"soal-task-error: {json.dumps(fields)}")
        raise


@contextmanager
def errors_of_tasks() -> Iterator[None]:
    """Raise a task's error as the task raised it, with Spark's error as its cause."""
    try:
        yield
    except SnapshotError:
        raise
    except Exception as error:
        lines = _LINE.findall(str(error))  # the last one of a traceback is the one that left the task
        fields: dict[str, Any] = parsed(lines[-1]) if lines else {"type": ""}
        make = _makers().get(fields["type"])
        if make is None:
            if missing := _MISSING.search(str(error)):
                raise MissingPackageError(
                    f"the Python of Spark's tasks has no module {missing[1]!r}: install soal[snapshots] on the"
                    " executors, and name that Python by PYSPARK_PYTHON"
                ) from error
            raise
        raise make(fields["message"], **fields["members"]) from error


def _makers() -> dict[str, Callable[..., SnapshotError]]:
    return {kind.__name__: kind for kind in SnapshotError.__subclasses__()}
