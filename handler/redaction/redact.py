"""Text without the secrets in it: for log lines, metrics, the log tail, arguments and error messages.

Two searches: for values that are known to be secret, wherever they appear (of variables, arguments and settings whose
names say so, of Secrets Manager), and for the forms in which secrets are written (`secret_forms`). A secret that is
neither known nor in such a form is not found.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, quote_plus

from handler.redaction.secret_forms import MASK, mask_forms, secrets_in
from handler.redaction.secret_names import is_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["PrivateKeys", "Redactor", "redact"]

_KNOWN_MIN_LENGTH: Final = 6
"""A shorter value occurs in many lines as a word; beside its name it is masked all the same."""
_READ_MIN_LENGTH: Final = 4
_LINE_MIN_LENGTH: Final = 8
_KNOWN_MAX: Final = 1000
"""Each is searched for in each line: this many cost one or two tenths of a millisecond. The first ones known stay."""
_LINES_MAX: Final = 200
"""Of one value, so that a long argument leaves room for others; keys and certificates have fewer."""
_WORD: Final = re.compile(r"[A-Za-z]?(?:[a-z]{1,11}|[A-Z]{1,11})")
_NAME: Final = re.compile(r"-{0,2}[\w.-]+")
_METRICS: Final = "_aws"
_CUT: Final = "…"
"""The mark of a cut, as the driver and usage errors set it."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """Masks the known values, then everything that has the form of a secret."""

    known: tuple[str, ...] = ()

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Redactor:
        """Return one that knows the values of variables whose names say that they are secret, and passwords in URLs."""
        return cls().knowing_settings(environment)

    def knowing(self, arguments: Iterable[str]) -> Redactor:
        """Return one that also knows the values of options such as `--password`, and arguments in a secret's form."""
        settings: list[tuple[str, str]] = []
        name = ""
        for argument in arguments:
            option, _, value = argument.partition("=")
            settings += [(option if _NAME.fullmatch(option) else "", value), ("", argument)]
            if not argument.startswith("--"):  # a password may begin with a dash; two are the next option
                settings.append((name, argument.removeprefix("-")))
            name = option if argument.startswith("-") and not value else ""
        return self._knowing_pairs(settings)

    def knowing_settings(self, settings: Mapping[str, str]) -> Redactor:
        """Return one that also knows the values of settings whose names say that they are secret."""
        return self._knowing_pairs(settings.items())

    def knowing_secrets(self, values: Iterable[str]) -> Redactor:
        """Return one that also knows secrets that the handler has read."""
        return self._knowing(value for value in values if len(value) >= _READ_MIN_LENGTH)

    def _knowing_pairs(self, settings: Iterable[tuple[str, str]]) -> Redactor:
        values: list[str] = []
        for name, value in settings:
            if is_secret(name, value) and not value.startswith("/"):
                values.append(value)
            values += secrets_in(value)
        return self._knowing(value for value in values if len(value) >= _KNOWN_MIN_LENGTH)

    def _knowing(self, values: Iterable[str]) -> Redactor:
        whole = list(dict.fromkeys(values))
        forms = [
            *(form for value in whole for form in _forms(value)),
            *(line for value in whole for line in _lines(value)),
        ]
        found = dict.fromkeys(form for form in (*self.known, *forms) if len(form) >= _READ_MIN_LENGTH)
        return Redactor(tuple(sorted(islice(found, _KNOWN_MAX), key=lambda form: (-len(form), form))))

    def __call__(self, text: str) -> str:
        """Mask everything."""
        return mask_forms(self._without_halves(self.masked_known(text)))

    def masked_known(self, text: str) -> str:
        """Mask the known values: before a text is cut, since half of a value is not found."""
        for value in self.known:
            if value in text:
                text = _sought(value).sub(MASK, text)
        return text

    def _without_halves(self, text: str) -> str:
        """Mask the beginning of a known value before a mark of a cut: others cut texts before the secrets are known."""
        if _CUT not in text:
            return text
        *parts, end = text.split(_CUT)
        return _CUT.join([*map(self._without_half, parts), end])

    def _without_half(self, part: str) -> str:
        for value in self.known:
            at = part.find(value[:_READ_MIN_LENGTH], max(0, len(part) - len(value)))
            while at >= 0:
                if value.startswith(part[at:]):
                    return part[:at] + MASK
                at = part.find(value[:_READ_MIN_LENGTH], at + 1)
        return part

    def shortened(self, text: str, length: int, *, is_cut: bool = False) -> str:
        """Mask everything, then cut. `is_cut`: the text has lost its end, where a known value may have begun."""
        masked = self(text)
        if is_cut and self.known:
            masked = masked[: -len(self.known[0])]
        return masked[:length]

    def metric(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Mask a metric's document: texts and names, but neither numbers nor CloudWatch's own fields."""
        return {name: value if name == _METRICS else self._masked(name, value) for name, value in document.items()}

    def _masked(self, name: str, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(value, str):
            return MASK if is_secret(name, value) else self(value)
        if isinstance(value, list):
            return [self._masked(name, one) for one in value]
        if isinstance(value, dict):
            return {self(key): self._masked(key, one) for key, one in value.items()}
        return value


def _forms(value: str) -> Iterable[str]:
    """Return a value as it is, in a URL, and in JSON."""
    yield from (value, value.strip(), quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1])
    yield json.dumps(value, ensure_ascii=False)[1:-1]


def _lines(value: str) -> Iterable[str]:
    """Return the lines of a value: output is masked by lines. A short one ("{", "true") would mask half of the log."""
    lines = (line for line in map(str.strip, value.splitlines()) if len(line) >= _LINE_MIN_LENGTH)
    return islice(lines, _LINES_MAX)


@lru_cache(maxsize=_KNOWN_MAX)
def _sought(value: str) -> re.Pattern[str]:
    """Return a pattern that finds a value anywhere, but a word (`postgres`) not inside a longer one (`postgresql`)."""
    literal = re.escape(value)
    if _WORD.fullmatch(value) is None:
        return re.compile(literal)
    # The letter of an escape (%3A, \n) belongs to no word.
    return re.compile(rf"(?:(?<![A-Za-z])|(?<=%[0-9A-Fa-f]{{2}})|(?<=\\[a-z])){literal}(?![A-Za-z])")


redact: Final = Redactor()
"""The forms alone, where no environment is at hand."""


@dataclass(slots=True)
class PrivateKeys:
    """Remembers of the lines of one stream that it is inside a private key."""

    _inside: bool = field(default=False, init=False)

    def is_inside(self, line: str) -> bool:
        """Tell whether the next line belongs to a key that an earlier one has begun."""
        was_inside = self._inside
        if was_inside or ("PRIVATE KEY-----" in line and "-----BEGIN" in line):
            self._inside = "-----END" not in line
        return was_inside
