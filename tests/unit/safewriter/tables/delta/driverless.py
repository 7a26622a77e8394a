"""A Delta session without a JVM, for the methods that need none; tests/integration has a real one."""

from __future__ import annotations

from types import SimpleNamespace

from py4j.protocol import Py4JError

from safewriter.tables.delta.session import DeltaSession


class JavaError(Exception):
    """An exception of Java's, as py4j raises it."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        kind = SimpleNamespace(getName=lambda: "java.lang.Exception")
        self.java_exception = SimpleNamespace(getMessage=lambda: said, getClass=lambda: kind)


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
