"""Stop PySpark's endless conversion of Java exceptions if Spark's settings cannot be read.

To show an exception, PySpark asks Spark for a setting. If Spark cannot read its settings (a number that is none), the
answer is an exception, too. PySpark converts and shows that one, and asks again: a script whose session cannot be made
hangs until its deadline. So while one question is open, the text of another exception is shown without a question.
"""

from __future__ import annotations

import threading
from functools import wraps

__all__ = ["install"]


def install() -> None:
    """Wrap the method by which PySpark shows a Java exception."""
    from pyspark.errors.exceptions.captured import CapturedException

    ask_and_show = CapturedException.__str__
    here = threading.local()

    @wraps(ask_and_show)
    def show(error: CapturedException) -> str:
        if getattr(here, "asks", False):
            return f"{error._desc}\n\nJVM stacktrace:\n{error._stackTrace}"  # noqa: SLF001 - as the original does
        here.asks = True
        try:
            return ask_and_show(error)
        finally:
            here.asks = False

    CapturedException.__str__ = show  # type: ignore[method-assign]
