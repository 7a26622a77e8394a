"""Changes to PySpark: an endless conversion of exceptions, imports that data ask for, and two waits that serve nothing
in a job.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from functools import partialmethod, wraps
from types import ModuleType
from typing import Any, Final, cast

__all__ = ["install"]

_PACKAGE: Final = "pyspark.testing"
_UTILS: Final = f"{_PACKAGE}.utils"
_POLL_S: Final = 0.02
_WITH_TYPES: Final = frozenset({"pyspark.ml.linalg", "pyspark.mllib.linalg"})


def install() -> None:
    """Make the changes."""
    _end_conversions()
    _import_no_types()
    _look_up_often()
    _put_testing_off()


def _end_conversions() -> None:
    """Show a Java exception without a question to Spark while another such question is open.

    To show one, PySpark asks Spark for a setting. If Spark cannot read its settings (a number that is none), the answer
    is an exception, too. PySpark converts and shows that one, and asks again: a script whose session cannot be made
    hangs until its deadline.
    """
    from pyspark.errors.exceptions.captured import CapturedException

    ask_and_show = CapturedException.__str__
    state = threading.local()

    @wraps(ask_and_show)
    def show(error: CapturedException) -> str:
        if getattr(state, "asks", False):
            return f"{error._desc}\n\nJVM stacktrace:\n{error._stackTrace}"  # noqa: SLF001 - as the original does
        state.asks = True
        try:
            return ask_and_show(error)
        finally:
            state.asks = False

    CapturedException.__str__ = show  # type: ignore[method-assign]


def _import_no_types() -> None:
    """Take the Python class of a column's type only from a module that the script, or Spark's ML, has imported.

    PySpark imports whatever module a schema names, and a Parquet file brings its schema along: its writer would run a
    module of Python in the job, as `venv.__main__`, which ends the job well at once.
    """
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.types import UserDefinedType

    def of_imported(cls: type, json: dict[str, Any]) -> UserDefinedType:
        module, _, name = str(json["pyClass"]).rpartition(".")
        if module in _WITH_TYPES:
            importlib.import_module(module)
        attribute = vars(sys.modules[module]).get(name) if module in sys.modules else None
        if isinstance(attribute, type) and issubclass(attribute, cls):
            return cast("UserDefinedType", attribute())
        raise PySparkTypeError(
            f"the data have a column of the Python class {module}.{name}, which is no imported type of a column; if the"
            f" job needs it, import {module} in the script before it reads the data"
        )

    UserDefinedType.fromJson = classmethod(of_imported)  # type: ignore[assignment, method-assign]


def _look_up_often() -> None:
    """Shorten the end of a SparkContext, which waits for a thread that looks up each half second."""
    from pyspark.accumulators import AccumulatorTCPServer

    AccumulatorTCPServer.serve_forever = partialmethod(  # type: ignore[method-assign, assignment]
        AccumulatorTCPServer.serve_forever, poll_interval=_POLL_S
    )


class _Later(ModuleType):
    """Stands for a module until somebody uses more of it than `members`."""

    def __init__(self, name: str, **members: object) -> None:
        super().__init__(name)
        self.__dict__.update(members)

    def __getattr__(self, attribute: str) -> Any:  # noqa: ANN401 - whatever the module has
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        for name in (_PACKAGE, _UTILS):
            if isinstance(sys.modules.get(name), _Later):
                del sys.modules[name]
        return getattr(importlib.import_module(self.__name__), attribute)


def _put_testing_off() -> None:
    """Import PySpark's testing package when somebody uses it. PySpark asks it whether NumPy is installed, at the first
    call to Java with an argument, and it imports pandas, unittest and more: most of a second, where there is pandas.
    """
    package = importlib.util.find_spec("pyspark")
    if package is None or package.submodule_search_locations is None or _PACKAGE in sys.modules:
        return
    folders = [f"{folder}/testing" for folder in package.submodule_search_locations]
    utils = _Later(_UTILS, have_numpy=importlib.util.find_spec("numpy") is not None)
    sys.modules.update({_PACKAGE: _Later(_PACKAGE, __path__=folders, utils=utils), _UTILS: utils})
