"""Prepare a guard while the JVM creates the Spark context and Python only waits.

Any earlier, a second thread would slow the script down, which waits for Python's lock after each call to the JVM.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import wraps
from typing import Any, Final

__all__ = ["GuardWarmUp"]

_JOIN_MAX_S: Final = 5.0


class GuardWarmUp:
    """A thread that starts with the first Spark context."""

    def __init__(self) -> None:
        self._thread = threading.Thread(target=_warm_up, name="soal-warm-up", daemon=True)

    def install(self) -> None:
        """Wrap the method that creates every SparkContext."""
        from pyspark.core.context import SparkContext

        initialize = SparkContext._initialize_context  # noqa: SLF001 - there for subclasses to replace

        @wraps(initialize)
        def beside(context: Any, jconf: Any) -> Any:  # noqa: ANN401 - private parts of PySpark's
            if self._thread.ident is None:
                self._thread.start()
            return initialize(context, jconf)

        SparkContext._initialize_context = beside  # type: ignore[assignment, method-assign]  # noqa: SLF001

    def join(self) -> None:
        """Wait for the thread: Python crashes with SIGSEGV if it exits while a thread runs a library's C code."""
        if self._thread.ident is not None:
            self._thread.join(_JOIN_MAX_S)


def _warm_up() -> None:
    with suppress(Exception):  # the block meets the error again, and raises it where the script can see it
        from safewriter.block.warmup import warm_up

        warm_up()
