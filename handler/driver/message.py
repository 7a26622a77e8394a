"""Reduce the message of an exception to what its reader needs; the job's log has the whole.

A text of Java or of a Python worker holds the whole stack trace, with the cause at its end: it becomes one line, the
exception, and the root cause if its message adds something. The script's own exceptions get theirs in the same way. Of
Spark's own errors the query is left out, and two schemas become the columns in which they differ.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["causes_of", "in_one_line", "message_of", "package_of", "shortened", "with_cause", "words_of"]

_PART_MAX_LENGTH: Final = 1500
_TEXT_MAX_LENGTH: Final = 131_072
"""Of a longer text only the beginning and the end are looked at: a message may quote a cell of any size."""
_ERRORS_MAX: Final = 5
_NAME_THEIR_CAUSE: Final = ("py4j", "pyspark", "safewriter")
"""Packages whose exceptions name their cause in their own words."""
_CAUSED_BY: Final = "Caused by: "
# As java.lang.Throwable prints them: frames, and suppressed exceptions with their frames.
_INDENTED: Final = re.compile(r"\t+(at |\.\.\. \d+ |Suppressed: |Caused by: )")
# Py4J's prefix of a trace; and the lines of PySpark and Spark after which they repeat the same exception.
_CALL: Final = re.compile(r"An error occurred while calling \S+\.\n: ")
_AGAIN: Final = re.compile(r"^(?:JVM|Driver) stacktrace:$", re.MULTILINE)
_PYTHON_FRAMES: Final = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+")

# Spark's query, with its plan, follows the line with the number of its error. Cells may read like such a number, too,
# so only the last one before the trace counts.
_STATE: Final = re.compile(r"SQLSTATE: \w{5}")
_JVM: Final = "JVM stacktrace:\n"
# Delta shows both schemas as trees; no cell stands before its name of the error.
_MISMATCH: Final = "[DELTA_METADATA_MISMATCH] "
_TABLE, _DATA, _NULLABLE = "Table schema:\n", "Data schema:\n", " (nullable = "
_BRANCH: Final = re.compile(r"([ |]*+)-- ")
_INDENT: Final = 5
_COLUMN_MAX_LENGTH: Final = 200
_COLUMNS_MAX: Final = 30
"""Whoever writes the data chooses number and length of the names. The log has both schemas."""


def message_of(error: BaseException) -> str:
    """Return an exception's message, as the module says."""
    message = _message_of(error)
    return message if package_of(error) in _NAME_THEIR_CAUSE else with_cause(error, message)


def with_cause(error: BaseException, message: str) -> str:
    """Return an exception's message with the last exception behind it that adds something."""
    _, *others = causes_of(error, or_context=True)
    causes = [(type(other).__name__, words) for other in others if (words := _message_of(other)) not in message]
    if not causes:
        return message
    cause = f"{'while handling' if error.__cause__ is None else 'root cause:'} {': '.join(causes[-1])}"
    return f"{message.rstrip(' :;.')}; {cause}" if message else cause


def causes_of(error: BaseException | None, *, or_context: bool = False) -> Iterator[BaseException]:
    """Yield an exception and its causes (`raise … from`), the outermost first. An error that the script has handled
    when another one came is no cause of that; with `or_context` it follows like one, as in a traceback.
    """
    for _ in range(_ERRORS_MAX):
        if error is None:
            return
        yield error
        shows_context = or_context and not error.__suppress_context__
        error = error.__cause__ or (error.__context__ if shows_context else None)


def package_of(error: BaseException) -> str:
    """Return the top-level package of an exception's class."""
    return type(error).__module__.partition(".")[0]


def _message_of(error: BaseException) -> str:
    text = words_of(error)
    if package_of(error) != "pyspark":
        return in_one_line(text)
    return " ".join(in_one_line(_with_difference(text) or _without_query(text)).split())


def words_of(error: BaseException) -> str:
    """Return the text of an exception; "" if there is none to get: a Java exception asks the JVM for it, which may be
    gone. A very long text lacks its middle.
    """
    try:
        return shortened(str(error))
    except Exception:  # noqa: BLE001 - the script's own classes may raise anything
        return ""


def shortened(text: str) -> str:
    """Return the beginning of a very long text, up to a word's end, and the lines at its end: a trace has its cause
    there.
    """
    if len(text) <= _TEXT_MAX_LENGTH:
        return text
    half = _TEXT_MAX_LENGTH // 2
    return f"{text[:half].rpartition(' ')[0]}…\n{text[-half:].partition(chr(10))[2]}"


def _without_query(text: str) -> str:
    """Leave out the query behind the number of Spark's error, and behind the first one in a trace."""
    told, jvm, trace = text.partition(_JVM)
    last = max((found.end() for found in _STATE.finditer(told)), default=len(told))
    if (first := _STATE.search(trace)) is not None:
        trace = _up_to_line_end(trace, first.end())
    return f"{_up_to_line_end(told, last)}{jvm}{trace}"


def _up_to_line_end(text: str, position: int) -> str:
    end = text.find("\n", position)
    return text if end < 0 else f"{text[:end].removesuffix(';')}\n"


def _with_difference(text: str) -> str | None:
    """Return Delta's message with the columns in which two schemas differ; None for any other message."""
    told, found, trees = text.partition(_TABLE)
    table, found_too, data = trees.partition(_DATA)
    if not (found and found_too and told.startswith(_MISMATCH)):
        return None
    return f"{told}{_difference(_columns(table), _columns(data.partition(_JVM)[0]))}"


def _columns(tree: str) -> dict[tuple[str, ...], str]:
    """Return the type of each column of a schema's tree, by its name and those of the columns around it."""
    columns: dict[tuple[str, ...], str] = {}
    above: list[str] = []
    for line in tree.splitlines():
        if (branch := _BRANCH.match(line)) is not None:
            column, nullable, _ = line[branch.end() :].partition(_NULLABLE)
            name, colon, kind = column.rpartition(": ")
            if nullable and colon:
                above[len(branch[1]) // _INDENT :] = [name]
                columns[*above] = kind
    return columns


def _difference(table: Mapping[tuple[str, ...], str], data: Mapping[tuple[str, ...], str]) -> str:
    told = {
        "only in the data": [_shown(path) for path in data if path not in table],
        "only in the table": [_shown(path) for path in table if path not in data],
        "of another type": [
            f"{_shown(path)} ({_shown((kind,))} in the table, {_shown((data[path],))} in the data)"
            for path, kind in table.items()
            if data.get(path, kind) != kind
        ],
    }
    return "Columns " + "; ".join(f"{where}: {_listed(names)}" for where, names in told.items() if names)


def _shown(path: tuple[str, ...]) -> str:
    """Return the whole name of a column, or how long it is: half a name may be half a secret."""
    length = sum(map(len, path)) + len(path) - 1
    return ".".join(path) if length <= _COLUMN_MAX_LENGTH else f"a name of {length} characters"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _COLUMNS_MAX
    return ", ".join(names[:_COLUMNS_MAX]) + (f" and {more} more" if more > 0 else "")


def in_one_line(text: str) -> str:
    """Return one line without the stack trace of Java or a Python worker; return a text without a trace unchanged."""
    lines = text.splitlines()
    if not any(line.startswith("\tat ") for line in lines):
        return _cut(_flat(f"{text}\n")) if _PYTHON_FRAMES.search(text) else text
    first, *others = _blocks(lines)
    message = _flat(_AGAIN.split(_CALL.sub("", first), maxsplit=1)[0])
    causes = [_flat(block.removeprefix(_CAUSED_BY)) for block in others if block.startswith(_CAUSED_BY)]
    root = next((cause for cause in reversed(causes) if _message(cause) not in message), None)
    return _cut(message) if root is None else f"{_cut(message).rstrip(' :;.')}; root cause: {_cut(root)}"


def _blocks(lines: Iterable[str]) -> Iterator[str]:
    """Yield the texts between frames; the first is the exception itself."""
    block: list[str] = []
    for line in lines:
        if not _INDENTED.match(line):
            block.append(line)
        elif block:
            yield "\n".join([*block, ""])
            block = []
    yield "\n".join([*block, ""])


def _flat(block: str) -> str:
    return " ".join(_PYTHON_FRAMES.sub("", block).split())


def _message(cause: str) -> str:
    """Return a cause's text without its type; it may be empty."""
    return cause.partition(": ")[2] or cause


def _cut(text: str) -> str:
    """Truncate between words: the handler masks secrets later, and would not recognise half a secret."""
    return text if len(text) <= _PART_MAX_LENGTH else f"{text[:_PART_MAX_LENGTH].rpartition(' ')[0]}…"
