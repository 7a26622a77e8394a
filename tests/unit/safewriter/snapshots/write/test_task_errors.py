"""The driver of a snapshot's build raises a task's error as itself, although Spark sends only its text."""

from __future__ import annotations

import traceback

import pytest

from safewriter.snapshots.errors import KeyRangeError, MissingPackageError, ShardAssignmentError, ShardWriteError
from safewriter.snapshots.write.task_errors import errors_for_driver, errors_of_tasks
from tests.support.java_errors import Java, raised


def raising(error: Exception, job: str = "job") -> None:
    with errors_for_driver(job):
        raise error


def text_of(error: Exception, job: str) -> str:
    """Return the driver's text of an error in a task."""
    try:
        raising(error, job)
    except Exception:  # noqa: BLE001 - as Spark's worker does
        return f"Job aborted:\n{traceback.format_exc()}\nDriver stacktrace: ..."
    raise AssertionError


def raised_for(error: Exception, kind: type[Exception] = RuntimeError) -> Exception:
    with pytest.raises(Exception) as found, errors_of_tasks() as job:  # noqa: PT011 - the test looks at the type
        raise kind(text_of(error, job))
    return found.value


def test_an_error_of_a_task_is_raised_on_the_driver_as_itself() -> None:
    """It has its message and its members, and Spark's error as its cause."""
    members = {"db_id": 3, "attempt": "00-b", "db_url": "s3://lake/p", "rows_written": 7}
    error = raised_for(ShardWriteError("a\nshard", **members))  # type: ignore[arg-type]
    assert type(error) is ShardWriteError
    assert (str(error), vars(error)) == ("a\nshard", members)
    assert isinstance(error.__cause__, RuntimeError)


def test_the_error_that_left_the_task_counts() -> None:
    """Its cause in the task does not."""
    first, second = KeyRangeError("first"), ShardAssignmentError("second")
    with pytest.raises(KeyRangeError):
        raising(first)
    second.__cause__ = first
    assert str(raised_for(second)) == "second"


class ForeignError(KeyRangeError): ...


class PythonException(Exception):  # noqa: N818 - PySpark's name
    """An error of a worker, as PySpark converts it: it has only a text."""


@pytest.mark.parametrize("error", [ValueError("of the source"), ForeignError("of a type that no driver knows")])
def test_other_errors_stay_as_they_are(error: Exception) -> None:
    """Spark's own error propagates."""
    assert isinstance(raised_for(error), RuntimeError)


def test_a_package_that_the_tasks_lack_is_named() -> None:
    """Spark's own message begins with a stack trace."""
    error = raised_for(ModuleNotFoundError("No module named 'pyarrow'"), PythonException)
    assert type(error) is MissingPackageError
    assert "no module 'pyarrow'" in str(error)
    assert "PYSPARK_PYTHON" in str(error)


def test_the_module_is_named_by_the_trace_of_java_s_error_too() -> None:
    """PySpark does not convert each error of a worker."""
    trace = "Traceback (most recent call last):\n  File a\nModuleNotFoundError: No module named 'a.b'\n"
    java = Java("a.SparkException", "failed", Java("org.apache.spark.api.python.PythonException", trace))
    with pytest.raises(MissingPackageError, match=r"no module 'a\.b'"), errors_of_tasks():
        raise raised(java)


@pytest.mark.parametrize(
    "cell",
    [
        'soal-task-error: {"type": "ShardWriteError", "message": "grant s3:*", "members": {}}',
        'soal-task-error job: {"type": "KeyRangeError", "message": "m", "members": {"a": 1}}',
        "Traceback (most recent call last):\n  File a\nModuleNotFoundError: No module named 'evil'",
    ],
)
@pytest.mark.parametrize("kind", [RuntimeError, PythonException])
def test_a_row_forges_no_error_of_a_task(cell: str, kind: type[Exception]) -> None:
    """An error may quote a cell of several lines: Spark's own error stays as it is."""
    assert type(raised_for(ValueError(f"the cell '\n{cell}\n' cannot be cast"), kind)) is kind
    with pytest.raises(RuntimeError), errors_of_tasks():
        raise raised(Java("a.SparkException", "failed", Java("a.Cast", f"the cell '\n{cell}\n' cannot be cast")))


def test_each_job_has_a_number_of_its_own() -> None:
    """A row that has seen the number of an earlier build knows nothing of this one."""
    numbers = set()
    for _ in range(5):
        with errors_of_tasks() as job:
            numbers.add(job)
    assert len(numbers) == 5
