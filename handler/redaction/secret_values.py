"""Find the secrets within a secret: Secrets Manager holds JSON objects, files of settings, and URLs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from handler.redaction.secret_forms import secrets_in
from handler.redaction.secret_names import is_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["secrets_within"]

_VALUES_MAX: Final = 10_000
_LINE: Final = re.compile(r"\s{0,40}([\w.-]{1,256})\s{0,40}[=:]\s{0,40}(\S.*)")
_PAIR: Final = re.compile(r"[^\s:/]+:(?!//)\S+")
"""As `credential` of an Iceberg REST catalog is written: the first colon ends the id."""


def secrets_within(secret: str, look: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Yield what a secret holds: values that a name or a form shows, and the second half of `id:secret`.

    `look` is called at each step of the search for forms, and may raise.
    """
    from safewriter.parsing import parsed  # late: commands that need no AWS import the redaction, too

    bare = secret.strip()
    yield bare
    if _PAIR.fullmatch(bare):
        yield bare.partition(":")[2]
    yield from secrets_in(secret, look)
    try:
        document = parsed(bare, values_max=_VALUES_MAX)
    except ValueError:
        yield from _in_lines(bare)
    else:
        yield from _in_document(document, look)


def _in_lines(text: str) -> Iterator[str]:
    """Yield the values of lines `name=value` or `name: value`: whatever stands in a password, it ends with its line."""
    for line in text.splitlines():
        if (match := _LINE.match(line)) is not None and is_secret(match[1], value := match[2].strip()):
            yield value
            yield value.strip("\"'")


def _in_document(document: object, look: Callable[[], None]) -> Iterator[str]:
    """Yield the values of JSON that have the name of a secret, alone, in a list, or in an object below it."""
    left = [("", document)]
    while left:
        name, value = left.pop()
        if isinstance(value, dict):
            own = {key for key, inner in value.items() if is_secret(key, str(inner))}
            left += ((name if name and not own else key, inner) for key, inner in value.items())
        elif isinstance(value, list):
            left += ((name, inner) for inner in value)
        elif value is not None:
            text = str(value)
            yield from secrets_in(text, look)
            if name and is_secret(name, text):
                yield text
