"""Text without the secrets in it: for log lines, metrics, the log tail, arguments and error messages.

Two nets: values that are known to be secret, wherever they appear (of variables, arguments and settings whose names say
so, of Secrets Manager), and the forms in which secrets are written (`secret_forms`). A secret in a form of its own that
is in neither is not found.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, quote_plus

from handler.secret_forms import MASK, mask_forms, secrets_in
from handler.secret_names import is_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["LineRedactor", "Redactor", "redact"]

_KNOWN_MIN_LENGTH: Final = 6
"""A shorter value is a word of many lines; where its name stands beside it, it is masked all the same."""
_READ_MIN_LENGTH: Final = 4
_LINE_MIN_LENGTH: Final = 8
_METRICS: Final = "_aws"


@dataclass(frozen=True, slots=True)
class Redactor:
    """Masks the known values, then everything that has the form of a secret."""

    known: tuple[str, ...] = ()

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Redactor:
        """Know the values of the variables whose names say that they are secret, and the passwords in URLs."""
        return cls().knowing_settings(environment)

    def knowing(self, arguments: Iterable[str]) -> Redactor:
        """Return one that also knows the values that follow options such as `--password`."""
        found = self
        name = ""
        for argument in arguments:
            option, equals, value = argument.partition("=")
            if argument.startswith("-"):
                name, argument = option, value if equals else ""  # noqa: PLW2901 - what stands for the value
            if name and argument:
                found, name = found.knowing_settings({name: argument}), ""
        return found

    def knowing_settings(self, settings: Mapping[str, str]) -> Redactor:
        """Return one that also knows the values of settings whose names say that they are secret."""
        values = {value for name, value in settings.items() if is_secret(name, value) and not value.startswith("/")}
        values |= {secret for value in settings.values() for secret in secrets_in(value)}
        return self._knowing(value for value in values if len(value) >= _KNOWN_MIN_LENGTH)

    def knowing_secrets(self, values: Iterable[str]) -> Redactor:
        """Return one that also knows secrets that the handler has read."""
        return self._knowing(value for value in values if len(value) >= _READ_MIN_LENGTH)

    def _knowing(self, values: Iterable[str]) -> Redactor:
        found = {form for value in values for form in _forms(value) if len(form) >= _READ_MIN_LENGTH}
        return Redactor(tuple(sorted({*self.known, *found}, key=lambda form: (-len(form), form))))

    def __call__(self, text: str) -> str:
        """Mask everything."""
        for value in self.known:
            text = text.replace(value, MASK)
        return mask_forms(text)

    def metric(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Mask a metric's document: texts and names, but neither numbers nor what CloudWatch reads."""
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
    """Return a value as it is, in a URL, in JSON, and line by line: output is masked by lines."""
    yield from (value, value.strip(), quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1])
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    # A short one ("{", "true") is no secret, and would mask half of the log.
    yield from (line for line in map(str.strip, value.splitlines()) if len(line) >= _LINE_MIN_LENGTH)


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
