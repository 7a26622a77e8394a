"""Keep the exceptions that functions of `foreachBatch` raise: Java calls these functions, and tells only a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from handler.driver.message import package_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["behind", "keep"]

_KEPT_MAX: Final = 8
_CAUSES_MAX: Final = 10
_QUERY_ID: Final = "sql.streaming.queryId"
_OF_PYTHON: Final = "py4j.Py4JException"
"""Java's class for an error of a Python function that it has called."""
_kept: Final[dict[str, BaseException]] = {}


def keep(error: BaseException, session: SparkSession) -> None:
    """Keep an error of the batch that this thread works on, under its stream's id."""
    try:
        query = session.sparkContext.getLocalProperty(_QUERY_ID)
    except Exception:  # noqa: BLE001 - the JVM may be gone
        return
    if query:
        _kept.pop(query, None)
        _kept[query] = error
        for old in [*_kept][:-_KEPT_MAX]:
            _kept.pop(old, None)


def behind(error: BaseException) -> BaseException | None:
    """Return the error of the batch that ended a stream, for the error of PySpark that tells of this end; else None."""
    if type(error).__name__ != "StreamingQueryException" or package_of(error) != "pyspark":
        return None
    try:
        origin: Any = getattr(error, "_origin", None)
        java = origin
        for _ in range(_CAUSES_MAX):
            if java is None:
                return None
            if java.getClass().getName() == _OF_PYTHON:
                return _kept.get(str(origin.getMessageParameters()["id"]))
            java = java.getCause()
    except Exception:  # noqa: BLE001 - the JVM may be gone
        return None
    return None
