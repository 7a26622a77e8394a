"""Exceptions of Java as Py4J and PySpark show them, without a JVM."""

from __future__ import annotations

from typing import Any


class Java:
    """An exception as Py4J shows it."""

    def __init__(self, name: str, message: str | None, cause: Java | None = None, *suppressed: Java) -> None:
        self._name, self._message, self._cause, self._suppressed = name, message, cause, suppressed
        self.parameters: dict[str, str] = {}

    def getClass(self) -> Java:  # noqa: N802 - Java's name
        return self

    def getName(self) -> str:  # noqa: N802 - Java's name
        return self._name

    def getMessage(self) -> str | None:  # noqa: N802 - Java's name
        return self._message

    def getCause(self) -> Java | None:  # noqa: N802 - Java's name
        return self._cause

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - Java's name
        return self.parameters

    def getSuppressed(self) -> tuple[Java, ...]:  # noqa: N802 - Java's name
        return self._suppressed


def ended_stream(query: str, cause: str = "py4j.Py4JException", module: str = "pyspark.errors.x") -> Exception:
    """Return PySpark's error for the end of a stream, with Java's exception and two causes behind it."""
    error: Any = type("StreamingQueryException", (Exception,), {"__module__": module})("failed")
    error._origin = Java("a.StreamingQueryException", "failed", Java("a.Batch", "failed", Java(cause, "Traceback")))
    error._origin.parameters["id"] = query
    assert isinstance(error, Exception)
    return error
