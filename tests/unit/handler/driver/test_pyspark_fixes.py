"""The driver's patches of PySpark save waits and imports, and mend its exceptions, without other visible changes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.utils import ForeachBatchFunction

from handler.driver import batch_errors, pyspark_fixes

if TYPE_CHECKING:
    from pathlib import Path

    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


BEGIN = """
import sys
from handler.driver import pyspark_fixes
import pyspark.sql
pyspark_fixes.install()
"""


def run(text: str) -> list[str]:
    """Run code in a separate process, whose imports do not depend on other tests."""
    done = subprocess.run([sys.executable, "-c", BEGIN + text], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_the_question_for_numpy_imports_nothing() -> None:
    """PySpark checks for NumPy at the first call to Java with an argument."""
    assert run(
        "from pyspark.testing.utils import have_numpy\n"
        "print(have_numpy, *(name in sys.modules for name in ('pandas', 'unittest')))\n"
    ) == ["True False False"]


def test_the_testing_package_is_there_for_who_uses_it() -> None:
    """It behaves as without the patch, by either of its names."""
    assert run(
        "from pyspark.testing import assertDataFrameEqual\n"
        "import pyspark.testing.utils\n"
        "print(assertDataFrameEqual.__module__, pyspark.testing.utils.assertDataFrameEqual is assertDataFrameEqual)\n"
        "print(type(sys.modules['pyspark.testing.utils']).__name__)\n"
    ) == ["pyspark.testing.utils True", "module"]


def test_a_name_that_is_not_there_is_an_error() -> None:
    """The module raises the usual error; reading its special names imports nothing."""
    assert run(
        "import pyspark.testing.utils as utils\n"
        "print(hasattr(utils, '__wrapped__'), 'unittest' in sys.modules)\n"
        "try:\n    from pyspark.testing.utils import nothing\nexcept ImportError:\n    print('error')\n"
    ) == ["False False", "error"]


def test_the_end_of_a_context_is_not_waited_for() -> None:
    """The thread polls fifty times a second."""
    assert run(
        "import inspect\n"
        "from pyspark.accumulators import AccumulatorTCPServer\n"
        "print(AccumulatorTCPServer.serve_forever.keywords if hasattr(AccumulatorTCPServer.serve_forever, 'keywords')"
        " else inspect.getattr_static(AccumulatorTCPServer, 'serve_forever').keywords)\n"
    ) == ["{'poll_interval': 0.02}"]


def test_showing_an_exception_ends_where_showing_it_fails_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inner exception is shown as it is; afterwards the next exception is shown in full again."""
    error: Any = CapturedException.__new__(CapturedException)
    error._desc, error._stackTrace = "no number", "at Spark"
    monkeypatch.setattr(CapturedException, "__str__", lambda shown: f"asked, and met: {shown!s}")
    pyspark_fixes._end_conversions()

    for _ in range(2):
        assert str(error) == "asked, and met: no number\n\nJVM stacktrace:\nat Spark"


def test_a_message_that_looks_like_a_trace_gives_an_exception_no_frames() -> None:
    """It may quote a cell of data."""
    cell = 'Traceback (most recent call last):\n  File "any/pyspark/a.py", line 1, in f\n    x\nValueError: y'
    assert run(
        "from pyspark.errors.exceptions import captured\n"
        f"captured._convert_exception = lambda _: ValueError({cell!r})\n"
        "print(captured.convert_exception(None).__traceback__)\n"
    ) == ["None"]


class Query:
    """A stream that has failed, or not; its parts, too."""

    def __init__(self, error: Any = None) -> None:
        self._jsq, self.error = self, error

    def exception(self) -> Query:
        return self

    def get(self) -> str:
        return "Java's exception"


def test_the_error_that_a_stream_tells_has_java_s_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark gives it only one that it raises."""
    monkeypatch.setattr(ForeachBatchFunction, "call", ForeachBatchFunction.call)
    monkeypatch.setattr(StreamingQuery, "exception", lambda query: query.error)
    pyspark_fixes._keep_errors_of_streams()
    error: Any = CapturedException.__new__(CapturedException)
    for origin, told in ((None, "Java's exception"), ("its own", "its own")):
        error._origin = origin
        query: Any = Query(error)
        assert StreamingQuery.exception(query)._origin == told  # type: ignore[union-attr]
    running: Any = Query()
    assert StreamingQuery.exception(running) is None


@pytest.mark.parametrize(("error", "raised"), [(ValueError("no"), ValueError), (SystemExit(75), RuntimeError)])
def test_what_a_batch_raises_is_kept_and_raised(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, raised: type[Exception]
) -> None:
    """Java gets only its text, and of an exit one, too: Py4J would leave the stream without an answer."""
    kept: list[object] = []
    monkeypatch.setattr(batch_errors, "keep", lambda *found: kept.append(found))
    monkeypatch.setattr(StreamingQuery, "exception", StreamingQuery.exception)
    monkeypatch.setattr(ForeachBatchFunction, "call", lambda function, frame, number: function.func(frame, number))
    pyspark_fixes._keep_errors_of_streams()
    session, frame = cast("SparkSession", object()), cast("JavaObject", object())

    def batch(_: object, number: int) -> None:
        if number:
            raise error

    function = ForeachBatchFunction(session, batch)
    function.call(frame, 0)
    assert not kept
    with pytest.raises(raised):
        function.call(frame, 1)
    assert kept == [(error, session)]


def test_a_schema_imports_no_module(tmp_path: Path) -> None:
    """A file names the Python class of a column: only a type that the script itself has imported is accepted."""
    (tmp_path / "ends.py").write_text("import sys\nsys.exit(0)\n")
    told = run(
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "import json, types\n"
        "from pyspark.sql.types import DoubleType, StructType, UserDefinedType\n"
        "mine = sys.modules['mine'] = types.ModuleType('mine')\n"
        "mine.Point = type('Point', (UserDefinedType,), {'sqlType': classmethod(lambda cls: DoubleType())})\n"
        "mine.call = sys.exit\n"
        "hostile = ('ends.X', 'venv.__main__.X', 'X', 'sys.exit', 'mine.call')\n"
        "for name in (*hostile, 'mine.Point', 'pyspark.ml.linalg.VectorUDT'):\n"
        "    kind = {'type': 'udt', 'pyClass': name, 'serializedClass': '', 'sqlType': 'double'}\n"
        "    field = {'name': 'a', 'type': kind, 'nullable': True, 'metadata': {}}\n"
        "    try:\n"
        "        print(type(StructType.fromJson({'type': 'struct', 'fields': [field]})[0].dataType).__name__)\n"
        "    except TypeError as error:\n"
        "        print('import' in str(error), name in str(error))\n"
    )
    assert told == ["True True"] * 5 + ["Point", "VectorUDT"]
