"""Text without the secrets in it: for log lines, the log tail, arguments and error messages.

Two nets: the values that this function's own environment holds under names of secrets, wherever they appear, and the
forms in which secrets are written. A secret in a form of its own that is in neither is not found.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["LineRedactor", "Redactor", "redact"]

MASK: Final = "[redacted]"
_KNOWN_MIN_LENGTH: Final = 8
_SECRET_MIN_LENGTH: Final = 4
_REFERENCES: Final = "SOAL_SECRETS"
"""The variable says where secrets lie, and errors name it."""

_NAME: Final = (
    r"(?:pass(?:word|wd|phrase)|pwd|secret|token|api[._-]?key|access[._-]?key|account[._-]?key|private[._-]?key"
    r"|credentials?|authorization|connection[._-]?string)"
)
# clientToken and its like name a run or a page: they are shown.
# So are SOAL_SECRETS and the ARNs of secrets: an error that says which one cannot be read must say which one.
_PUBLIC: Final = (
    r"(?!(?:client|next|continuation|fencing)[._-]?token\b|tokens?\s+is\b|soal_secrets\b|secretsmanager:)"
    r"(?<!:[0-9]{12}:)"
)
_NAMED: Final = rf"[\w.-]{{0,64}}?{_NAME}[\w.-]{{0,32}}"
_VALUE: Final = r"""(?!\[redacted\])(?:\\?"(?:[^"\\]|\\.)*?\\?"|'[^']*'|[^\s,;&'"}\])]+)"""
_BARE_KEY: Final = (
    r"(?<![A-Za-z0-9/+=])(?=[^\s]{0,39}[a-z])(?=[^\s]{0,39}[A-Z])(?=[^\s]{0,39}[0-9])(?!/)"
    r"(?![A-Za-z0-9+=]*(?:/[A-Za-z0-9+=]*){4})[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])"
)
_SECRET_NAME: Final = re.compile(rf"(?i)(?:^|[._-]|(?<=[a-z])){_NAME}")

_RULES: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", MASK),
        # user:password@ in any URL
        (r"(?i)\b([a-z][a-z0-9+.-]{1,20}://)[^\s/@'\"]{1,256}@", rf"\1{MASK}@"),
        # pre-signed URLs
        (r"(?i)\b(X-Amz-(?:Signature|Credential|Security-Token)=)[^&\s'\"]+", rf"\1{MASK}"),
        (r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", rf"\1 {MASK}"),
        # name = value, "name": "value", --name value
        (rf"(?i)(?<![\w.-])({_PUBLIC}{_NAMED}\\?[\"']?\s{{0,4}}(?:=>|[:=])\s{{0,4}}){_VALUE}", rf"\1{MASK}"),
        (rf"(?i)(?<![\w-])(--{_PUBLIC}{_NAMED}\s+)(?!--)[^\s]+", rf"\1{MASK}"),
        (r"(?<![A-Z0-9])(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|ANPA|AROA)[A-Z0-9]{16}(?![A-Z0-9])", MASK),
        # session tokens of STS
        (r"(?<![A-Za-z0-9])(?:IQoJ|FwoG|FQoG)[A-Za-z0-9/+=]{40,}", MASK),
        # a bare secret access key: 40 characters, of all kinds, and not a path
        (_BARE_KEY, MASK),
        (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", MASK),
        (
            r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|sk-[A-Za-z0-9_-]{20,})",
            MASK,
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Masks the known values, then everything that has the form of a secret."""

    known: tuple[str, ...] = ()

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Redactor:
        """Know the values of the variables whose names say that they are secret."""
        values = {
            value
            for name, value in environment.items()
            if name != _REFERENCES
            and _SECRET_NAME.search(name)
            and len(value) >= _KNOWN_MIN_LENGTH
            and not value.startswith("/")
        }
        return cls(tuple(sorted(values, key=len, reverse=True)))

    def knowing(self, arguments: Iterable[str]) -> Redactor:
        """Return one that also knows the values that follow options such as `--password`."""
        given, shown = tuple(arguments), self.arguments(arguments)
        found = {value for value, mask in zip(given, shown, strict=True) if mask == MASK and value != MASK}
        found |= {value for argument in given for value in _option_values(argument)}
        return Redactor(tuple(sorted({*self.known, *found}, key=len, reverse=True)))

    def knowing_secrets(self, values: Iterable[str]) -> Redactor:
        """Return one that also knows secrets that the handler has read, in the forms in which they are written: as they
        are, in a URL, in JSON, and line by line.
        """
        found = {form for value in values for form in _forms(value) if len(form) >= _SECRET_MIN_LENGTH}
        return Redactor(tuple(sorted({*self.known, *found}, key=len, reverse=True)))

    def mask_known(self, text: str) -> str:
        """Mask the known values only."""
        for value in self.known:
            text = text.replace(value, MASK)
        return text

    def __call__(self, text: str) -> str:
        """Mask everything."""
        text = self.mask_known(text)
        for pattern, replacement in _RULES:
            text = pattern.sub(replacement, text)
        return text

    def arguments(self, arguments: Iterable[str]) -> tuple[str, ...]:
        """Mask a list of arguments, where `--password` and its value are two elements."""
        shown: list[str] = []
        hide_next = False
        for argument in arguments:
            shown.append(MASK if hide_next and not argument.startswith("--") else self(argument))
            hide_next = argument.startswith("-") and "=" not in argument and bool(_SECRET_NAME.search(argument))
        return tuple(shown)


def _option_values(argument: str) -> Iterable[str]:
    """Return the value of `--password=value`."""
    name, equals, value = argument.partition("=")
    return (value,) if equals and name.startswith("--") and value and _SECRET_NAME.search(name) else ()


def _forms(value: str) -> Iterable[str]:
    yield from (value, value.strip(), quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1])
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    # Output is masked by lines. A short one ("{", "true") is no secret, and would mask half of the log.
    yield from (line for line in map(str.strip, value.splitlines()) if len(line) >= _KNOWN_MIN_LENGTH)


redact: Final = Redactor()
"""The forms alone, where no environment is at hand."""


@dataclass(slots=True)
class LineRedactor:
    """A redactor for lines of one stream, which remembers that it is inside a private key."""

    redactor: Redactor
    _inside_key: bool = field(default=False, init=False)

    def __call__(self, line: str) -> str:
        """Mask one line."""
        if self._inside_key:
            self._inside_key = "-----END" not in line
            return MASK
        if "PRIVATE KEY-----" in line and "-----BEGIN" in line:
            self._inside_key = "-----END" not in line
        return self.redactor(line)
