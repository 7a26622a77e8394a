"""Patches of PySpark: exceptions that data forge, lose or never end, imports that data can cause, two useless waits."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from functools import partialmethod, wraps
from types import ModuleType
from typing import Any, Final, cast

from handler.driver import batch_errors

__all__ = ["install"]

_PACKAGE: Final = "pyspark.testing"
_UTILS: Final = f"{_PACKAGE}.utils"
_POLL_S: Final = 0.02
_WITH_TYPES: Final = frozenset({"pyspark.ml.linalg", "pyspark.mllib.linalg"})


def install() -> None:
    """Make the changes."""
    _end_conversions()
    _recover_no_frames()
    _keep_errors_of_streams()
    _import_no_types()
    _look_up_often()
    _put_testing_off()


def _end_conversions() -> None:
    """Show a Java exception without reading a Spark setting if PySpark is already reading one to show an exception.

    To show an exception, PySpark reads a setting from Spark. If Spark cannot parse its settings (such as a malformed
    number), this raises another exception, which PySpark shows by reading the setting again: a script whose session
    cannot be made hangs until its deadline.
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


def _recover_no_frames() -> None:
    """Leave an exception of Java the traceback that it has.

    PySpark searches its message for the trace of a Python worker, and adds that trace's frames to the traceback. But a
    message also quotes data, which could so name any file, line and function.
    """
    from pyspark.errors.exceptions import base, captured

    for module in (base, captured):
        module.recover_python_exception = lambda error: error  # type: ignore[attr-defined]


def _keep_errors_of_streams() -> None:
    """Keep the exception of a function of `foreachBatch`, and Java's behind `StreamingQuery.exception()`."""
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.utils import ForeachBatchFunction

    call, ask = ForeachBatchFunction.call, StreamingQuery.exception

    @wraps(call)
    def call_and_keep(function: ForeachBatchFunction, frame: Any, batch_id: int) -> None:  # noqa: ANN401 - Java's
        try:
            call(function, frame, batch_id)
        except BaseException as error:
            batch_errors.keep(error, function.session)
            if isinstance(error, Exception):
                raise
            # Py4J answers Java with an Exception only: after a sys.exit the stream would wait for ever.
            raise RuntimeError(f"the batch has ended the script: {error!r}") from error

    @wraps(ask)
    def ask_with_origin(query: StreamingQuery) -> Any:  # noqa: ANN401 - two classes of PySpark's
        error: Any = ask(query)
        if error is not None and error._origin is None:  # noqa: SLF001 - as for an exception that PySpark raises
            error._origin = query._jsq.exception().get()  # noqa: SLF001
        return error

    ForeachBatchFunction.call = call_and_keep  # type: ignore[method-assign, assignment]
    StreamingQuery.exception = ask_with_origin  # type: ignore[method-assign, assignment]


def _import_no_types() -> None:
    """Take the Python class of a column's type only from a module that the script has imported, or from Spark's ML.

    PySpark imports any module that a schema names, and a Parquet file contains its schema. So the writer of a file
    could run any installed module in the job: `venv.__main__` exits with 0 at once.
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
    """Shorten the stop of a SparkContext, which waits for a thread that polls every half second."""
    from pyspark.accumulators import AccumulatorTCPServer

    AccumulatorTCPServer.serve_forever = partialmethod(  # type: ignore[method-assign, assignment]
        AccumulatorTCPServer.serve_forever, poll_interval=_POLL_S
    )


class _Later(ModuleType):
    """A placeholder that imports the real module when code uses more of it than `members`."""

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
    """Import PySpark's testing package only when code uses it. At the first call to Java with an argument, PySpark asks
    it whether NumPy is installed, and it imports pandas, unittest and more: most of a second if pandas is installed.
    """
    package = importlib.util.find_spec("pyspark")
    if package is None or package.submodule_search_locations is None or _PACKAGE in sys.modules:
        return
    folders = [f"{folder}/testing" for folder in package.submodule_search_locations]
    utils = _Later(_UTILS, have_numpy=importlib.util.find_spec("numpy") is not None)
    sys.modules.update({_PACKAGE: _Later(_PACKAGE, __path__=folders, utils=utils), _UTILS: utils})
