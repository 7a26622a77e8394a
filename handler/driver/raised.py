"""Describe the exceptions that ended a script; the handler searches them for anything that the image lacks."""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["described"]

_ERRORS_MAX: Final = 5
_TEXT_MAX_LENGTH: Final = 8000
_LINE_MAX_LENGTH: Final = 400
_SPARK: Final = ("pyspark", "py4j")
_FOLDERS: Final = tuple(f"/{package}/" for package in _SPARK)
_JAVA_FRAME: Final = re.compile(r"\t+(?:at |\.\.\. )")


def described(error: BaseException) -> list[dict[str, Any]]:
    """Return an exception and its causes, the outermost first.

    `type` is the name of its class; `ofSpark`: the class is PySpark's, or PySpark's code raised it; `text`: the files
    of PySpark in its traceback, then its message without Java's frames.
    """
    return [_described(link) for link in _chain(error)]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the exceptions that a traceback shows."""
    for _ in range(_ERRORS_MAX):
        if error is None:
            return
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _described(error: BaseException) -> dict[str, Any]:
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    library_files = [name for name in files if any(folder in name for folder in _FOLDERS)]
    of_spark = type(error).__module__.partition(".")[0] in _SPARK or (bool(files) and files[-1] in library_files)
    # A PySpark exception keeps Java's causes apart from its message.
    words = f"{_words(error)}\n{getattr(error, '_stackTrace', None) or ''}"
    lines = [line[:_LINE_MAX_LENGTH] for line in words.splitlines() if not _JAVA_FRAME.match(line)]
    text = "\n".join(dict.fromkeys([*library_files, *lines]))
    return {"type": type(error).__name__, "ofSpark": of_spark, "text": text[:_TEXT_MAX_LENGTH]}


def _words(error: BaseException) -> str:
    """Return the message; "" if there is none to get: a Java exception asks the JVM for it, which may be gone."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the script's own classes may raise anything
        return ""
