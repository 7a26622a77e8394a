"""The driver describes an uncaught exception with its causes, so that the handler can name a missing dependency."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.errors.exceptions.base import PySparkException, recover_python_exception

from handler.driver import batch_errors, raised
from handler.driver.raised import described, exit_code_of, line_of
from safewriter.errors import StoreError, UsageError
from tests.support.java_errors import Java, ended_stream

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
    """An exception that the script has handled is no cause: the way without the package may fail for any reason."""

    def from_another(*, is_cause: bool) -> None:
        try:
            import not_anywhere  # type: ignore[import-not-found] # noqa: F401
        except ImportError as error:
            if is_cause:
                raise RuntimeError("no frames") from error
            raise OSError("the source does not answer")  # noqa: B904 - the way without the package

    told = described(caught(lambda: from_another(is_cause=True)))
    assert [(one["type"], one["text"]) for one in told] == [
        ("RuntimeError", "no frames"),
        ("ModuleNotFoundError", "No module named 'not_anywhere'"),
    ]
    (own,) = described(caught(lambda: from_another(is_cause=False)))
    assert own["type"] == "OSError"


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


def test_a_text_of_indented_first_lines_is_searched_in_bounded_time() -> None:
    """No trace begins there, so none is read to the text's end (the test's own time limit decides)."""
    assert raised._OF_WORKER.search(" Traceback (most recent call last):\n" * 60_000) is None


def test_the_places_in_pyspark_that_an_import_passed_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """If PySpark imports a package, the script has used something that needs it."""
    module = ModuleType("pyspark.of_mine")
    source = "def need():\n    import not_anywhere\n"
    place = f"{pyspark.__path__[0]}/ml/base.py"
    exec(compile(source, place, "exec"), module.__dict__)  # noqa: S102
    monkeypatch.setitem(sys.modules, "pyspark.of_mine", module)
    told = described(caught(module.need))[0]
    assert (told["type"], told["ofSpark"]) == ("ModuleNotFoundError", True)
    assert told["text"] == f"{place}\nNo module named 'not_anywhere'"


@pytest.mark.parametrize("type_name", ["java.nio.file.AccessDeniedException", "a.b.CommitFailedException"])
def test_no_frame_that_a_message_names_becomes_a_line(type_name: str) -> None:
    """PySpark itself makes frames of a message that looks like a trace, and the message quotes a cell."""
    file = f"{type_name}: s3a://evil/pyspark/a.csv"
    cell = f'Traceback (most recent call last):\n  File "{file}", line 1, in f\n    x\nValueError: y'
    error = recover_python_exception(PySparkException(cell))
    assert error.__traceback__ is not None
    (told,) = described(error)
    assert (told["ofSpark"], told["text"]) == (True, " ".join(cell.split()))


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


def worker_error(text: str, module: str = "pyspark.errors.exceptions.captured") -> Exception:
    error = type("PythonException", (Exception,), {"__module__": module})(text)
    assert isinstance(error, Exception)
    return error


def test_the_line_of_a_worker_s_error_is_in_the_first_trace_alone() -> None:
    """Its message may look like another trace, and an exception of the script's own may have any text."""
    group = '    |   File "/job/job.py", line 9, in f\n'
    ours = f'  File "/job/job.py", line 4, in f\n{group}  File "/opt/lib.py", line 5, in g\n'
    text = f'See below.\nTraceback (most recent call last):\n{ours}ValueError: no\n  File "/job/job.py", line 7, in h\n'
    assert line_of(worker_error(text), ["/job"]) == "job.py, line 4"
    assert line_of(worker_error(text, "__main__"), ["/job"]) is None
    assert line_of(type("E", (Exception,), {"__module__": "pyspark.x"})(text), ["/job"]) is None


def test_the_error_of_a_batch_is_told_behind_the_end_of_its_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java has only its text; its line is the script's."""
    module = tmp_path / "job.py"
    module.write_text("\nimport not_anywhere\n")

    def batch() -> None:
        exec(compile(module.read_text(), str(module), "exec"), {})  # noqa: S102 - a file of the job

    ended = ended_stream("q")
    monkeypatch.setattr(batch_errors, "_kept", {"q": caught(batch)})
    assert [one["type"] for one in described(ended)] == ["StreamingQueryException", "ModuleNotFoundError"]
    assert described(ended)[1]["text"] == "No module named 'not_anywhere'"
    assert line_of(ended, [str(tmp_path)]) == "job.py, line 2"


def test_the_exit_code_of_a_stream_s_end_is_the_one_of_its_batch_s_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the error were raised outside of the batch: the run may be tried again, or is the caller's mistake."""
    for error, code in ((StoreError("no answer"), 75), (UsageError("no such step"), 2), (ValueError(), 1)):
        monkeypatch.setattr(batch_errors, "_kept", {"q": error})
        assert exit_code_of(ended_stream("q")) == exit_code_of(error) == code
    assert exit_code_of(ended_stream("another")) == 1


def test_an_end_of_a_stream_that_a_batch_has_raised_again_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept for the stream that it tells of."""
    ended = ended_stream("q")
    monkeypatch.setattr(batch_errors, "_kept", {"q": ended})
    assert len(described(ended)) == 2
    assert line_of(ended, ["/job"]) is None


def test_the_line_of_a_syntax_error_is_in_no_frame(tmp_path: Path) -> None:
    """The script was never run."""
    script = str(tmp_path / "job.py")
    assert line_of(caught(lambda: compile("x = (\n", script, "exec")), [str(tmp_path)]) == "job.py, line 1"
