"""Exceptions of Java, as Py4J and PySpark show them, without a JVM."""

from __future__ import annotations

from typing import Any


class Java:
    """An exception of Java's. `condition`: Spark's name of the error, if it is one of Spark's or Delta's."""

    def __init__(
        self,
        name: str,
        message: str | None,
        cause: Any = None,
        *suppressed: Java,
        condition: str | None = None,
        **parameters: str,
    ) -> None:
        self._name, self._message, self._cause = name, message, cause
        self._suppressed, self._parameters = suppressed, parameters
        if condition is not None:
            self.getCondition = lambda: condition

    def getClass(self) -> Java:  # noqa: N802 - Java's name
        return self

    def getName(self) -> str:  # noqa: N802 - Java's name
        return self._name

    def getMessage(self) -> str | None:  # noqa: N802 - Java's name
        return self._message

    def getCause(self) -> Any:  # noqa: N802 - Java's name
        return self._cause

    def getSuppressed(self) -> tuple[Java, ...]:  # noqa: N802 - Java's name
        return self._suppressed

    def getMessageParameters(self) -> dict[str, str]:  # noqa: N802 - Java's name
        return self._parameters


def refused(code: str, text: str) -> Java:
    """Return the gate's refusal."""
    return Java("io.soal.logstore.Refused", f"SafeWriter [{code}]: {text}")


def existing(condition: str, message: str, **parameters: str) -> Java:
    """Return an exception of Spark's or Delta's that has a condition."""
    return Java("org.apache.spark.sql.AnalysisException", message, condition=condition, **parameters)


def raised(java: Any) -> Exception:
    """Return the error as Py4J raises it; its text has the messages of all causes, as a trace has."""
    return _error(java, "java_exception")


def converted(java: Any) -> Exception:
    """Return the error as PySpark raises it, if it has an exception of its own for it."""
    return _error(java, "_origin")


def wrapped(error: Exception, how: str) -> Exception:
    """Return an error of a script's that it raises in an `except` of this one: by `raise … from error` (`from`),
    without it (`while handling`), or by `from None` (`from none`).
    """
    own = RuntimeError("could not write the day")
    own.__context__ = error
    if how != "while handling":
        own.__cause__ = error if how == "from" else None
    return own


def ended_stream(query: str, cause: str = "py4j.Py4JException", module: str = "pyspark.errors.x") -> Exception:
    """Return PySpark's error for the end of a stream, with Java's exception and two causes behind it."""
    error: Any = type("StreamingQueryException", (Exception,), {"__module__": module})("failed")
    batch = Java("a.Batch", "failed", Java(cause, "Traceback"))
    error._origin = Java("a.StreamingQueryException", "failed", batch, id=query)
    assert isinstance(error, Exception)
    return error


def _error(java: Any, member: str) -> Exception:
    messages, cause = [], java
    while isinstance(cause, Java):
        messages.append(str(cause.getMessage()))
        cause = cause.getCause()
    error = RuntimeError("\nCaused by: ".join(messages))
    setattr(error, member, java)
    return error
