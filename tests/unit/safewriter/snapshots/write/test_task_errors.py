"""The driver of a snapshot's build raises a task's error as itself, although Spark sends only its text."""

from __future__ import annotations

import traceback

import pytest

from safewriter.snapshots.errors import KeyRangeError, MissingPackageError, ShardAssignmentError, ShardWriteError
from safewriter.snapshots.write.task_errors import errors_for_driver, errors_of_tasks


def raising(error: Exception) -> None:
    with errors_for_driver():
        raise error


def text_of(error: Exception) -> str:
    """Return the driver's text of an error in a task."""
    try:
        raising(error)
    except Exception:  # noqa: BLE001 - as Spark's worker does
        return f"Job aborted:\n{traceback.format_exc()}\nDriver stacktrace: ..."
    raise AssertionError


def raised_for(text: str) -> Exception:
    with pytest.raises(Exception) as found, errors_of_tasks():  # noqa: PT011 - the type is looked at by the test
        raise RuntimeError(text)
    return found.value


def test_an_error_of_a_task_is_raised_on_the_driver_as_itself() -> None:
    """It has its message and its members, and Spark's error as its cause."""
    members = {"db_id": 3, "attempt": "00-b", "db_url": "s3://lake/p", "rows_written": 7}
    error = raised_for(text_of(ShardWriteError("a\nshard", **members)))  # type: ignore[arg-type]
    assert type(error) is ShardWriteError
    assert (str(error), vars(error)) == ("a\nshard", members)
    assert isinstance(error.__cause__, RuntimeError)


def test_the_error_that_left_the_task_counts() -> None:
    """Its cause in the task does not."""
    first, second = KeyRangeError("first"), ShardAssignmentError("second")
    with pytest.raises(KeyRangeError):
        raising(first)
    second.__cause__ = first
    assert str(raised_for(text_of(second))) == "second"


class ForeignError(KeyRangeError): ...


@pytest.mark.parametrize("error", [ValueError("of the source"), ForeignError("of a type that no driver knows")])
def test_other_errors_stay_as_they_are(error: Exception) -> None:
    """Spark's own error propagates."""
    assert isinstance(raised_for(text_of(error)), RuntimeError)


def test_a_package_that_the_tasks_lack_is_named() -> None:
    """Spark's own message begins with a stack trace."""
    error = raised_for(text_of(ModuleNotFoundError("No module named 'pyarrow'")))
    assert type(error) is MissingPackageError
    assert "no module 'pyarrow'" in str(error)
    assert "PYSPARK_PYTHON" in str(error)
