"""Usage errors: they say what the caller must change, in words that need no knowledge of this code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from handler.redaction.redact import redact
from handler.redaction.secret_forms import MASK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import BaseModel, ValidationError

__all__ = ["InputError", "NoJob", "described", "problem_of", "validated"]

_M = TypeVar("_M", bound="BaseModel")
_FOUND_MAX: Final = 80
_READ_MAX: Final = 2048
"""An event may have hundreds of bad values, and redaction scans each character many times."""
_HALVES_MAX: Final = 1024
"""Drop this many characters before a cut: a truncated secret may lack the end by which redaction recognises it."""
_MESSAGE_MAX: Final = 1000
_MORE_MAX: Final = 9
_ENTRIES_MAX: Final = 1000
"""Of one list or object; no field allows more."""
_DEPTH: Final = 5
"""The document, `configurationOverrides`, its list, an entry of that, and the properties."""

# What to do, by pydantic's error type. `{…}` are pydantic's context values.
_REMEDIES: Final[dict[str, str]] = {
    "missing": "is missing; add it",
    "extra_forbidden": "is not a known field; remove it or correct its name",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "tuple_type": "must be a list",
    "dict_type": "must be an object of strings",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "too_long": "must have at most {max_length} entries",
    "literal_error": "must be {expected}",
    "int_parsing": "must be a whole number",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}


class InputError(Exception):
    """The event or a setting must be changed; the job was not started and nothing was written.

    `field` is the path in the event (`conf.spark.master`, `entryPointArguments[2]`) or the environment variable.
    """

    def __init__(self, field: str, problem: str, *, more: Sequence[InputError] = ()) -> None:
        self.field, self.problem, self.more = _one_line(field), _one_line(problem), tuple(more)
        told = [f"{self.field}: {self.problem}", *map(str, more[:_MORE_MAX])]
        super().__init__("; ".join(told) + (f"; and {len(more) - _MORE_MAX} more" if len(more) > _MORE_MAX else ""))

    @classmethod
    def of(cls, errors: Sequence[InputError]) -> InputError:
        """Return one error with all that is wrong, so that the caller can correct everything at once. `field` is the
        first.
        """
        first, *more = [one for error in errors for one in (error, *error.more)]
        return cls(first.field, first.problem, more=[cls(one.field, one.problem) for one in more])


class NoJob(InputError):  # noqa: N818 - no error for whoever has sent the event
    """The event asks for no job: nothing is to be done, and nothing to be changed."""


def _one_line(text: str) -> str:
    """Make an outside text printable and short enough for a message."""
    line = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text[:_MESSAGE_MAX]
    )
    return line if len(text) <= _MESSAGE_MAX else f"{line}…"


def validated(model: type[_M], data: object, *, prefix: str = "", depth: int = _DEPTH) -> _M:
    """Validate `data` as `model`; raise its errors as one `InputError` with their paths below `prefix`.

    Check first the sizes of lists and objects in the outermost `depth` levels; deeper ones may have any size.
    """
    from pydantic import ValidationError  # not above: scripts/setup imports this module before there are packages

    _check_sizes(data, prefix, depth)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False)[: _MORE_MAX + 2]
        raise InputError.of([InputError(_path(prefix, one["loc"]), _problem(one)) for one in found]) from None


def _check_sizes(data: object, path: str, depth: int) -> None:
    """Check the number of entries: pydantic collects an error for each, and only the first ones are reported."""
    if depth == 0 or not isinstance(data, dict | list):
        return
    if (number := len(data)) > _ENTRIES_MAX:
        raise InputError(path.lstrip(".") or "event", f"has {number} entries; {_ENTRIES_MAX} are allowed")
    parts = ((f".{name}", value) for name, value in data.items()) if isinstance(data, dict) else enumerate(data)
    for part, value in parts:
        _check_sizes(value, f"{path}{part}" if isinstance(part, str) else f"{path}[{part}]", depth - 1)


def problem_of(error: ValidationError) -> str:
    """Describe the first error in SoAL's words."""
    return _problem(error.errors(include_url=False)[0])


def _path(prefix: str, loc: tuple[int | str, ...]) -> str:
    path = prefix
    for part in loc:
        if part == "[key]":  # pydantic's mark for a bad key of a mapping; the key itself precedes it
            continue
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path.lstrip(".") or "event"


def _problem(error: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails
    if error["type"] == "value_error":  # raised by a validator of SoAL, with its own message
        return str(error["ctx"]["error"])
    template = _REMEDIES.get(error["type"])
    text = template.format(**error.get("ctx", {})) if template else str(error["msg"])
    if error["type"] in ("missing", "extra_forbidden"):
        return text
    return f"{text}, not {described(error['input'])}"


def described(value: object) -> str:
    """Describe a value on one short line without secrets."""
    text = ""
    try:
        for part in _pieces(value):
            text += part
            if len(text) > _READ_MAX:
                return _beginning(text[:_READ_MAX])
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deeply"
    text = redact(text)
    return text if len(text) <= _FOUND_MAX else f"{text[:_FOUND_MAX]}…"


def _beginning(text: str) -> str:
    """Mask a truncated text, and drop its end, which may be half a secret."""
    head, mask, tail = redact(text).rpartition(MASK)
    return f"{head}{mask}{tail[:-_HALVES_MAX]}"[:_FOUND_MAX] + "…"


def _pieces(value: object) -> Iterator[str]:
    """Yield the `repr` of a value part by part, so that the reader may stop early."""
    if type(value) is dict:
        yield "{"
        for index, (key, inner) in enumerate(value.items()):
            yield ", " if index else ""
            yield from _pieces(key)
            yield ": "
            yield from _pieces(inner)
        yield "}"
    elif type(value) is list:
        yield "["
        for index, inner in enumerate(value):
            yield ", " if index else ""
            yield from _pieces(inner)
        yield "]"
    else:
        yield repr(value[:_READ_MAX] if type(value) is str else value)
