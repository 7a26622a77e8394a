"""Errors of tasks: Spark sends only their text to the driver, where this module restores the error.

The task adds the error as JSON to its traceback, as a line of its own, by Python's `add_note`. The line begins with a
number of this one job of Spark, so that no row, which an error may quote, can forge it.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from safewriter.entropy import unique_id
from safewriter.parsing import parsed
from safewriter.snapshots.errors import MissingPackageError, SnapshotError
from safewriter.tables.thrown import class_of, thrown_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["errors_for_driver", "errors_of_tasks"]

_OF_JAVA: Final = "org.apache.spark.api.python.PythonException"
_TRACE: Final = "Traceback (most recent call last):\n"
_MISSING: Final = re.compile(r"(?:[ \t][^\n]*+\n)++ModuleNotFoundError: No module named '([\w.]+)'")


@contextmanager
def errors_for_driver(job: str) -> Iterator[None]:
    """Add a `SnapshotError` that leaves a task to its own text, for `errors_of_tasks`. `job`: the number from there."""
    try:
        yield
    except SnapshotError as error:
        members = {name: value for name, value in vars(error).items() if name != "__notes__"}
        fields = {"type": type(error).__name__, "message": str(error), "members": members}
        error.add_note(f"{_mark(job)}{json.dumps(fields)}")
        raise


@contextmanager
def errors_of_tasks() -> Iterator[str]:
    """Raise a task's error as the task raised it, with Spark's error as its cause.

    Yields a random number, which the tasks give to `errors_for_driver`.
    """
    job = unique_id()
    try:
        yield job
    except SnapshotError:
        raise
    except Exception as error:
        # The last one of a traceback is the one that left the task.
        lines = [line for line in str(error).split("\n") if line.startswith(_mark(job))]
        fields: dict[str, Any] = parsed(lines[-1].removeprefix(_mark(job))) if lines else {"type": ""}
        make = _makers().get(fields["type"])
        if make is None:
            if (missing := _missing_in(error)) is not None:
                raise MissingPackageError(
                    f"the Python of Spark's tasks has no module {missing!r}: install soal[snapshots] on the"
                    " executors, and name that Python by PYSPARK_PYTHON"
                ) from error
            raise
        raise make(fields["message"], **fields["members"]) from error


def _mark(job: str) -> str:
    return f"soal-task-error {job}: "


def _missing_in(error: Exception) -> str | None:
    """Return the module that a worker of Spark's lacked, if that ended it: no row stands before it in the trace."""
    of_worker = [java for java in thrown_by(error) if class_of(java) == _OF_JAVA]
    # PySpark converts the error of a worker, and then keeps only its text.
    texts = (
        [str(error)] if type(error).__name__ == "PythonException" else [str(java.getMessage()) for java in of_worker]
    )
    for text in texts:
        found = _MISSING.match(text.partition(_TRACE)[2])
        if found is not None:
            return found[1]
    return None


def _makers() -> dict[str, Callable[..., SnapshotError]]:
    return {kind.__name__: kind for kind in SnapshotError.__subclasses__()}
