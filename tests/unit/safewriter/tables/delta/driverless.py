"""A Delta session without a JVM, for the methods that need none; tests/integration has a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from safewriter.tables.delta.session import DeltaSession

if TYPE_CHECKING:
    from tests.support.java_errors import Java


class JavaError(Exception):
    """An exception of Java's, as py4j raises it."""

    def __init__(self, java: Java) -> None:
        super().__init__(java.getMessage())
        self.java_exception = java


class Gates:
    """The gate's class in a JVM that does not have it."""

    def protocol(self) -> int:
        raise Py4JError("io.soal.logstore.Gate does not exist in the JVM")


def session() -> DeltaSession:
    """A session without a JVM, for the methods that need none."""
    made = object.__new__(DeltaSession)
    made.table = "s3a://lake/t"
    made.jspark = None
    made._gate = None
    made._reads_back = False
    made._gates = Gates()
    return made
