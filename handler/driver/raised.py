"""Describe the exceptions that ended a script: the handler names the script's line, the reason of an exit, and
anything that the image lacks.
"""

from __future__ import annotations

import re
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from handler.driver.batch_errors import behind
from handler.driver.message import causes_of, package_of, shortened, with_cause, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["described", "exit_code_of", "line_of", "refusal_of"]

_TEXT_MAX_LENGTH: Final = 8000
_LINE_MAX_LENGTH: Final = 400
_SPARK: Final = ("pyspark", "py4j")
_JAVA_MAX: Final = 10
_WORKER_ERROR: Final = "PythonException"
_OF_WORKER: Final = re.compile(r"(?m)^Traceback \(most recent call last\):\n(?:[ \t].*+\n)++(\S.*)")
"""The first trace of a Python worker: its frames are indented, so the line behind them is the exception. The trace is
not: else a text of indented first lines would be read to its end from each of them.
"""
_WORKER_FRAME: Final = re.compile(r'^  File "(.+)", line (\d+), in ', re.MULTILINE)


def described(error: BaseException) -> list[dict[str, Any]]:
    """Return an exception and its causes, the outermost first: they decide what the failure is. Behind the end of a
    stream comes its batch's error.

    `type` is the name of its class; `ofSpark`: the class is PySpark's, or PySpark's code raised it; `text`: the files
    of PySpark in its traceback, then its message in one line, or a line `CLASS: message` for each exception of Java.
    A message may hold any data, and none can begin a line.
    """
    return [_described(link) for outer in causes_of(error) for link in (outer, *causes_of(behind(outer)))]


def _described(error: BaseException) -> dict[str, Any]:
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    folders = _folders()
    library_files = [name for name in files if name.startswith(folders)]
    of_spark = package_of(error) in _SPARK or (bool(files) and files[-1] in library_files)
    name = type(error).__name__
    lines = _java_lines(error) or [_line("", name, words_of(error))]
    text = "\n".join(dict.fromkeys([*library_files, *lines]))
    return {"type": name, "ofSpark": of_spark, "text": text[:_TEXT_MAX_LENGTH]}


def _folders() -> tuple[str, ...]:
    """Return the folders of the imported PySpark and Py4J."""
    modules = (sys.modules.get(package) for package in _SPARK)
    return tuple(f"{folder}/" for module in modules for folder in getattr(module, "__path__", ()))


def _java_lines(error: BaseException) -> list[str]:
    """Return a line for the Java exception behind an error of PySpark's, and one for each of its causes and of those
    that they have suppressed.
    """
    lines: list[str] = []
    try:
        left = [getattr(error, "java_exception", None) or getattr(error, "_origin", None)]
        while left and len(lines) < _JAVA_MAX:
            if (java := left.pop(0)) is not None:
                name = str(java.getClass().getName())
                lines.append(_line(f"{name}: ", name.rpartition(".")[2], shortened(str(java.getMessage() or ""))))
                left = [java.getCause(), *left, *java.getSuppressed()]
    except Exception:  # noqa: BLE001 - the JVM may be gone
        return lines
    return lines


def _line(head: str, name: str, message: str) -> str:
    if name == _WORKER_ERROR and (found := _OF_WORKER.search(message)) is not None:
        head, message = "", found[1]
    return f"{head}{' '.join(message.split())}"[:_LINE_MAX_LENGTH]


def exit_code_of(error: BaseException) -> int:
    """Return the exit code that an exception asks for, 1 if it asks for none; of a stream's end that of its batch's."""
    code = getattr(behind(error) or error, "exit_code", 1)
    return code if type(code) is int and 0 < code < 256 else 1  # noqa: PLR2004 - a process's exit codes


def line_of(error: BaseException, places: Iterable[str]) -> str | None:
    """Return the innermost line of the job's own code on an exception's way, such as `my_job.py, line 12`; None if
    there is none. For an error in a batch of a stream or in a worker of Spark's SQL it is the line there, if possible.
    `places`: the folders and archives of the job's modules.
    """
    links = (link for link in (behind(error), error) if link is not None)
    return next(filter(None, (_line_in(link, tuple(map(Path, places))) for link in links)), None)


def _line_in(error: BaseException, folders: tuple[Path, ...]) -> str | None:
    lines = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        lines.append((str(error.filename), error.lineno or 0))
    lines.extend(_worker_lines(error))
    for file, line in reversed(lines):
        for folder in folders:
            if Path(file).is_relative_to(folder):
                return f"{Path(file).relative_to(folder)}, line {line}"
    return None


def _worker_lines(error: BaseException) -> Iterator[tuple[str, int]]:
    """Yield the frames of the first trace in PySpark's own error of a worker: no data stand before their end."""
    if type(error).__name__ == _WORKER_ERROR and package_of(error) in _SPARK:
        trace = _OF_WORKER.search(words_of(error))
        yield from ((file, int(line)) for file, line in _WORKER_FRAME.findall(trace[0] if trace else ""))


def refusal_of(end: SystemExit) -> tuple[str | None, bool]:
    """Return why a script ended itself, as far as it is known, and whether its parser of arguments did, of which the
    exception knows only an exit code. The reason is the text that the script gave, and the exception that it handled.
    """
    if isinstance(end.code, str):
        return with_cause(end, end.code), False
    parsers = getattr(sys.modules.get("argparse"), "ArgumentParser", ())
    for frame, _ in traceback.walk_tb(end.__traceback__):
        if frame.f_code.co_name == "error" and isinstance(frame.f_locals.get("self"), parsers):
            return str(frame.f_locals.get("message")), True
    return with_cause(end, "") or None, False
