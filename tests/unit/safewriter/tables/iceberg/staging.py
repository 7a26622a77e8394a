"""A JVM of plain objects for an Iceberg block: its transaction, and the exceptions of Java and PySpark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

if TYPE_CHECKING:
    from safewriter.tables.iceberg.session import IcebergSession

NOW_MS = 1_800_000_000_000
CATALOG = {"type": "rest", "uri": "https://catalog", "credential": "secret"}
TABLE = {
    "location": "s3://lake/t",
    "table-uuid": "uuid",
    "format-version": 2,
    "last-updated-ms": 5,
    "last-sequence-number": 3,
    "refs": {"main": {"snapshot-id": 7, "type": "branch"}, "audit": {"snapshot-id": 8, "type": "branch"}},
}


class Java:
    """An exception of Java's."""

    def __init__(self, name: str) -> None:
        self._name = name

    def getClass(self) -> SimpleNamespace:  # noqa: N802 - Java's names
        return SimpleNamespace(getSimpleName=lambda: self._name)

    def getMessage(self) -> str:  # noqa: N802
        return "said by Java"


class JavaError(Py4JJavaError):  # type: ignore[misc]  # py4j has no types
    """The same, as py4j raises it."""

    def __init__(self, name: str) -> None:
        self.java_exception = Java(name)

    def __str__(self) -> str:
        return "JavaError"


class PySparkError(CapturedException):
    """The same, as pyspark raises it, if it has an exception of its own for it."""

    def __init__(self, name: str) -> None:
        self._origin = Java(name)

    def __str__(self) -> str:
        return "PySparkError"


class Staging:
    """A transaction that records its calls."""

    def __init__(self, done: list[str]) -> None:
        self._done = done
        self.staged = True
        self.error: Exception | None = None
        self.stray: Exception | None = None
        self.mark: str | None = None
        self.strays: str | None = None
        self.shown = False

    def isStaged(self) -> bool:  # noqa: N802
        if self.stray is not None:
            raise self.stray
        return self.staged

    def publish(self) -> str | None:
        self._done.append("published")
        if self.error is not None:
            raise self.error
        return self.mark

    def isShown(self, *_: object) -> bool:  # noqa: N802
        return self.shown

    def shut(self) -> str | None:
        self._done.append("shut")
        return self.strays


def opened(session: IcebergSession, done: list[str]) -> Staging:
    """Give the session an open transaction, and return that."""
    staging = Staging(done)
    session._staging = staging
    return staging


REFRESHED = "refreshed `lake`.`db`.`t`"
