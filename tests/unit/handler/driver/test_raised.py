"""The driver describes an uncaught exception with its causes, so that the handler can name a missing dependency."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from handler.driver.raised import described, line_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


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


def test_an_error_of_pyspark_s_is_spark_s_and_tells_java_s_causes() -> None:
    """PySpark keeps these causes apart from its message; the frames are left out."""
    trace = "a.E: no\n\tat a.B.c(B.java:1)\n\t... 9 more\n\t\tat D\nCaused by: java.lang.ClassNotFoundException: d.F\n"
    kind = type("AnalysisException", (Exception,), {"__module__": "pyspark.errors.exceptions.captured"})
    error = kind("no table")
    error._stackTrace = trace
    told = described(error)[0]
    assert (told["type"], told["ofSpark"]) == ("AnalysisException", True)
    assert "no table" in told["text"]
    assert "Caused by: java.lang.ClassNotFoundException: d.F" in told["text"]
    assert "\tat" not in told["text"]


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
    """Each line is truncated, so that one does not hide the others, and then the whole text."""

    def fails() -> None:
        raise ValueError("\n".join(f"{number} " + "x" * 1000 for number in range(1000)))

    text = described(caught(fails))[0]["text"]
    assert len(text) == 8000
    assert len(text.splitlines()) > 15


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
