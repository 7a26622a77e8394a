"""The exceptions of Java behind an error: the guard judges an error by their classes and conditions, never by a text.

The text of an error holds data, such as a cell that could not be cast, and the name of an object; whoever writes those
could have them say anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from safewriter.errors import SafeWriterError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["class_of", "condition_of", "of_existing_table", "thrown_by"]

_CAUSES_MAX: Final = 20
_EXISTS: Final = frozenset(
    {"DELTA_PATH_EXISTS", "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "TABLE_OR_VIEW_ALREADY_EXISTS"}
)
_EXISTS_IN_ICEBERG: Final = "org.apache.iceberg.exceptions.AlreadyExistsException"


def thrown_by(error: BaseException) -> Iterator[Any]:
    """Yield the exception of Java behind an error of Py4J or PySpark, then its causes; also if the script has raised an
    error of its own from that one (`raise … from`). Nothing for any other error, nor for one that the guard has judged
    already, and no more from a JVM that is gone.
    """
    java = _behind(error)
    for _ in range(_CAUSES_MAX):
        if java is None:
            return
        yield java
        try:
            java = java.getCause()
        except Exception:  # noqa: BLE001 - py4j raises many kinds when the JVM is gone
            return


def _behind(error: BaseException) -> Any:  # noqa: ANN401 - of Py4J, which has no types
    """Return what Java has thrown for the first error of Py4J or PySpark among an error and its causes, else None.

    An error that the script has handled is no cause of one that came meanwhile. A `SafeWriterError` ends the way:
    another block's refusal is not this one's.
    """
    link: BaseException | None = error
    for _ in range(_CAUSES_MAX):
        if link is None or isinstance(link, SafeWriterError):
            return None
        # PySpark converts some exceptions, and keeps what Java has thrown.
        java: Any = getattr(link, "java_exception", None) or getattr(link, "_origin", None)
        if java is not None:
            return java
        link = link.__cause__
    return None


def class_of(java: Any) -> str:  # noqa: ANN401 - of Py4J, which has no types
    """Return the full name of the class of an exception of Java; "" if the JVM is gone."""
    try:
        return str(java.getClass().getName())
    except Exception:  # noqa: BLE001 - as above
        return ""


def condition_of(java: Any) -> str:  # noqa: ANN401 - as above
    """Return Spark's or Delta's name of the error that an exception of theirs stands for, without the part behind a
    point; "" for any other exception.
    """
    try:
        return str(java.getCondition()).partition(".")[0]
    except Exception:  # noqa: BLE001 - only Spark's and Delta's own exceptions have a condition
        return ""


def of_existing_table(error: BaseException) -> Any | None:  # noqa: ANN401 - as above
    """Return the exception of Java by which Spark, Delta or Iceberg has told that a table exists already, else None."""
    return next((java for java in thrown_by(error) if _tells_existence(java)), None)


def _tells_existence(java: Any) -> bool:  # noqa: ANN401 - as above
    return class_of(java) == _EXISTS_IN_ICEBERG or condition_of(java) in _EXISTS
