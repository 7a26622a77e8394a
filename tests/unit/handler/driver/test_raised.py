"""The driver describes an uncaught exception with its causes, so that the handler can name a missing dependency."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from handler.driver.raised import described, line_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def caught(what: Callable[[], object]) -> BaseException:
    try:
        what()
    except BaseException as error:  # noqa: BLE001 - it is what is tested
        return error
    raise AssertionError


def test_an_error_is_told_by_its_type_and_its_words() -> None:
    """An exception is the script's own unless Spark raised it."""

    def fails() -> None:
        raise ValueError("price of row 7 is negative")

    assert described(caught(fails)) == [
        {"type": "ValueError", "ofSpark": False, "text": "price of row 7 is negative"},
    ]


def test_what_an_error_came_from_is_told_behind_it() -> None:
    """The chain holds its cause or the exception being handled, but not one that the script suppressed."""

    def from_another(*, hidden: bool) -> None:
        try:
            import not_anywhere  # type: ignore[import-not-found] # noqa: F401
        except ImportError:
            if hidden:
                raise RuntimeError("no frames") from None
            raise RuntimeError("no frames")  # noqa: B904 - many scripts do so

    told = described(caught(lambda: from_another(hidden=False)))
    assert [(one["type"], one["text"]) for one in told] == [
        ("RuntimeError", "no frames"),
        ("ModuleNotFoundError", "No module named 'not_anywhere'"),
    ]
    assert len(described(caught(lambda: from_another(hidden=True)))) == 1


class Java:
    """An exception as Py4J shows it."""

    def __init__(self, name: str, message: str | None, cause: Java | None = None, *suppressed: Java) -> None:
        self._name, self._message, self._cause, self._suppressed = name, message, cause, suppressed

    def getClass(self) -> Java:  # noqa: N802 - Java's name
        return self

    def getName(self) -> str:  # noqa: N802 - Java's name
        return self._name

    def getMessage(self) -> str | None:  # noqa: N802 - Java's name
        return self._message

    def getCause(self) -> Java | None:  # noqa: N802 - Java's name
        return self._cause

    def getSuppressed(self) -> tuple[Java, ...]:  # noqa: N802 - Java's name
        return self._suppressed


def captured(words: str, origin: Java | None, name: str = "AnalysisException") -> dict[str, Any]:
    kind = type(name, (Exception,), {"__module__": "pyspark.errors.exceptions.captured"})
    error = kind(words)
    error._origin = origin
    return described(error)[0]


def test_an_error_of_pyspark_s_is_spark_s_and_tells_java_s_exceptions() -> None:
    """Each has a line with its class, its cause behind it; what was suppressed comes last."""
    lost = Java("a.Lost", "no constructor", None, Java("java.lang.ClassNotFoundException", "d.F"))
    told = captured("no table", Java("a.E", "no table", Java("java.lang.reflect.Wrapped", None, lost)))
    assert (told["type"], told["ofSpark"]) == ("AnalysisException", True)
    assert told["text"].splitlines() == [
        "a.E: no table",
        "java.lang.reflect.Wrapped: ",
        "a.Lost: no constructor",
        "java.lang.ClassNotFoundException: d.F",
    ]


def test_no_message_begins_a_line_for_which_it_could_be_taken() -> None:
    """A cell of data or the name of an object may hold any letters, and Spark quotes it."""
    cell = "7\nCaused by: x\njava.lang.ClassNotFoundException: com.evil.Miner\rq"
    flat = "7 Caused by: x java.lang.ClassNotFoundException: com.evil.Miner q"
    assert captured(cell, None)["text"] == flat
    assert captured(cell, Java("a.E", cell))["text"] == f"a.E: {flat}"


@pytest.mark.parametrize("of_java", [True, False])
def test_of_a_worker_s_trace_the_exception_is_told(of_java: bool) -> None:  # noqa: FBT001 - a parameter
    """What follows it may be its message, which may look like another trace."""
    cell = "Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'miner'"
    trace = f'Seen:\nTraceback (most recent call last):\n  File "worker.py", line 1\n    f()\nValueError: no\n{cell}\n'
    name = "org.apache.spark.api.python.PythonException"
    told = captured(trace, Java(name, trace) if of_java else None, "PythonException")
    assert told["text"] == "ValueError: no"


def test_the_places_in_pyspark_that_an_import_passed_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """If PySpark imports a package, the script has used something that needs it."""
    module = ModuleType("pyspark.of_mine")
    source = "def need():\n    import not_anywhere\n"
    exec(compile(source, "/opt/python/pyspark/ml/base.py", "exec"), module.__dict__)  # noqa: S102
    monkeypatch.setitem(sys.modules, "pyspark.of_mine", module)
    told = described(caught(module.need))[0]
    assert (told["type"], told["ofSpark"]) == ("ModuleNotFoundError", True)
    assert told["text"] == "/opt/python/pyspark/ml/base.py\nNo module named 'not_anywhere'"


def test_an_error_that_cannot_tell_its_words_hides_no_other() -> None:
    """The message may come from the JVM, which may be gone."""

    class Wordless(Exception):  # noqa: N818 - as scripts name them
        def __str__(self) -> str:
            raise ConnectionError

    error = ValueError("no rows")
    error.__cause__ = Wordless()
    assert [(one["type"], one["text"]) for one in described(error)] == [("ValueError", "no rows"), ("Wordless", "")]


def test_a_long_text_is_cut() -> None:
    """Each line is truncated, so that one does not hide the others."""
    cause = None
    for number in range(1000):
        cause = Java(f"a.E{number}", "x" * 1000, cause)
    assert [len(line) for line in captured("", cause)["text"].splitlines()] == [400] * 10


def test_the_line_is_the_innermost_of_the_job_s_own_code(tmp_path: Path) -> None:
    """A library's frames follow it; a module of the job has its path in its folder or archive."""
    (tmp_path / "team").mkdir()
    module = tmp_path / "team" / "daily.py"
    code = compile("import json\n\ndef read(text):\n    return json.loads(text)\n", str(module), "exec")
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - a file of the job
    error = caught(lambda: names["read"]("{"))
    assert line_of(error, [str(tmp_path)]) == "team/daily.py, line 4"
    assert line_of(error, [str(tmp_path / "elsewhere")]) is None


def test_the_line_of_a_syntax_error_is_in_no_frame(tmp_path: Path) -> None:
    """The script was never run."""
    script = str(tmp_path / "job.py")
    assert line_of(caught(lambda: compile("x = (\n", script, "exec")), [str(tmp_path)]) == "job.py, line 1"
