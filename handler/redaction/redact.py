"""Mask secrets in log lines, metrics, the log tail, arguments and error messages.

There are two searches: for known secret values, wherever they appear (from Secrets Manager, and from variables,
arguments and settings whose names say that they are secret), and for the forms of secrets (`secret_forms`). A secret
that is neither known nor in such a form is not found.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from handler.redaction.effort import WITHHELD, Effort
from handler.redaction.known import START, KnownForms, encoded_forms, plain_forms
from handler.redaction.secret_forms import MASK, mask_forms, secrets_in
from handler.redaction.secret_names import is_common, is_secret
from handler.redaction.secret_values import secrets_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["PrivateKeys", "Redactor", "redact"]

_KEPT: Final = 3
"""Of a long text this many times the shown length is searched: masks may be shorter than the secrets they hide."""
_END_WITHHELD: Final = 1_000
"""Drop this many characters before a cut: the beginning of a truncated secret no longer has a form to recognise."""

_KNOWN_MIN_LENGTH: Final = 6
"""A shorter value may be an ordinary word in many lines, so it is masked only beside its name."""
_LINE_MIN_LENGTH: Final = 8
_LETTERS_MAX: Final = 4_194_304
"""The total length of all forms: the value of an argument may have 64 KiB. Later forms are dropped."""
_NAME: Final = re.compile(r"-{0,2}[\w.-]+")
_KNOWING_MAX_S: Final = 2.0
"""CPU time to find the secrets in arguments or settings, before a job starts."""
_METRICS: Final = "_aws"
_VALUE: Final = "value"
_KEY_LINES_MAX: Final = 400
_DIGITS: Final = str.maketrans("123456789", "000000000")
# Every line of a job is judged, however long it is and whatever it holds: so each alternative reads it once.
_OF_KEY: Final = re.compile(
    r"^\W{0,16}+[A-Za-z0-9+/=]*+\W{0,16}+$"  # a line of Base64, or an empty one
    r"|(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40}"  # Base64 after a time or a name
    r"|(?i:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID): "
)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Masks the known values, then everything that has the form of a secret. A text whose search takes too long is
    withheld.
    """

    known: tuple[str, ...] = ()
    """The values in all their forms, the longest first."""
    effort: Effort = field(default_factory=Effort, repr=False, compare=False)
    is_complete: bool = True
    """Whether each argument and setting was searched in time. Of another one only the whole is known, not what it
    holds: a job must not start with it.
    """
    _forms: KnownForms = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_forms", KnownForms(self.known))

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Redactor:
        """Return a redactor that knows passwords in URLs, and variables whose names say that they are secret."""
        return cls().knowing_settings(environment)

    def knowing(self, arguments: Iterable[str]) -> Redactor:
        """Return a redactor that also knows values of options such as `--password`, and secret forms in arguments."""
        settings: list[tuple[str, str]] = []
        name = ""
        for argument in arguments:
            option, _, value = argument.partition("=")
            settings += [(option if _NAME.fullmatch(option) else "", value), ("", argument)]
            if not argument.startswith("--"):  # a password may begin with one dash; two begin the next option
                settings.append((name, argument.removeprefix("-")))
            name = option if argument.startswith("-") and not value else ""
        return self._knowing_pairs(settings)

    def knowing_settings(self, settings: Mapping[str, str]) -> Redactor:
        """Return a redactor that also knows the values of settings whose names say that they are secret."""
        return self._knowing_pairs(settings.items())

    def knowing_secrets(self, values: Iterable[str]) -> Redactor:
        """Return a redactor that also knows secrets that the handler has read, and those in them: passwords of a JSON
        object, of lines `name=value`, or of a URL, and the second half of `id:secret`.
        """
        known = (inner for value in values for inner in (value, *secrets_within(value)))
        return self._knowing(value for value in known if len(value) >= START)

    def _knowing_pairs(self, settings: Iterable[tuple[str, str]]) -> Redactor:
        values: list[str] = []
        effort = self.effort.anew(_KNOWING_MAX_S)
        is_complete = True
        for name, value in settings:
            is_named = is_secret(name, value) and not value.startswith("/")
            found = effort.spent_on(partial(_secrets_of, value, is_named=is_named), None)
            is_complete &= found is not None
            values += [value] if found is None else found
        long = (value for value in values if len(value) >= _KNOWN_MIN_LENGTH)
        return self._knowing(long, is_complete=is_complete)

    def _knowing(self, values: Iterable[str], *, is_complete: bool = True) -> Redactor:
        secrets = [value for value in dict.fromkeys(values) if not is_common(value)]
        forms = chain(
            self.known,
            *(chain(plain_forms(value), _lines(value)) for value in secrets),
            *map(encoded_forms, secrets),
        )
        known: dict[str, None] = {}
        letters = 0
        for form in forms:
            if len(form) < START or form in MASK or form in known:
                continue
            if letters + len(form) <= _LETTERS_MAX:
                letters += len(form)
                known[form] = None
        ordered = tuple(sorted(known, key=lambda form: (-len(form), form)))
        return replace(self, known=ordered, is_complete=self.is_complete and is_complete)

    def __call__(self, text: str, *, is_cut: bool = False) -> str:
        """Mask known values and forms. The beginning of a value before the mark of a truncation is masked, too.

        `is_cut`: the text has lost its end without a mark.
        """
        return self.effort.spent_on(
            lambda look: mask_forms(self._forms.masked(text, MASK, look, is_cut=is_cut), look), WITHHELD
        )

    def shortened(self, text: str, length: int, *, is_cut: bool = False) -> str:
        """Mask all secrets, then truncate. The end of a long text is not searched."""
        beginning = text[: _KEPT * length]
        is_long = len(beginning) < len(text)
        masked = self(beginning, is_cut=is_cut or is_long)
        if is_long and masked != WITHHELD:
            masked = masked[:-_END_WITHHELD]
        return masked if len(masked) <= length else f"{masked[:length]}…"

    def metric(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Mask a metric's texts and names, but no numbers. Known values are masked the same way in CloudWatch's own
        fields and in the member names to which they refer.
        """
        beside = _beside(document)
        return {
            self._known("", name): _replaced(beside(name), value, self._known if name == _METRICS else self._member)
            for name, value in document.items()
        }

    def _known(self, _: str, text: str) -> str:
        return self.effort.spent_on(lambda look: self._forms.masked(text, MASK, look), WITHHELD)

    def _member(self, name: str, text: str) -> str:
        return MASK if is_secret(name, text) else self(text)


def _replaced(name: str, value: Any, masked: Callable[[str, str], str]) -> Any:  # noqa: ANN401 - any JSON value
    """Mask all texts in a member of a metric, each by the name beside it: that of its member, the text before it in a
    list of two, or for a member `value` the text of a member `name` or `key`.
    """
    if isinstance(value, str):
        return masked(name, value)
    if isinstance(value, list):
        shown = [_replaced(name, entry, masked) for entry in value]
        match value:
            case [str(first), _]:
                shown[1] = _replaced(first, shown[1], masked)
        return shown
    if isinstance(value, dict):
        beside = _beside(value)
        return {masked("", key): _replaced(beside(key), member, masked) for key, member in value.items()}
    return value


def _beside(members: Mapping[str, Any]) -> Callable[[str], str]:
    """Return a function from a member's name to the name by which its text is judged."""
    names = {key.lower(): member for key, member in members.items() if isinstance(member, str)}
    named = names.get("name") or names.get("key") or _VALUE
    return lambda key: named if key.lower() == _VALUE else key


def _secrets_of(value: str, look: Callable[[], None], *, is_named: bool) -> list[str]:
    """Return the secrets in a value. `is_named`: its name says that it is one itself."""
    whole = [value, *secrets_within(value, look)] if is_named else []
    return [*whole, *secrets_in(value, look)]


def _lines(value: str) -> Iterable[str]:
    """Return the lines of a value, since output is masked by lines. Short ones ("{") would mask half of the log."""
    return (line for line in map(str.strip, value.splitlines()) if len(line) >= _LINE_MIN_LENGTH)


redact: Final = Redactor(effort=Effort(math.inf))
"""A redactor that masks only forms, for use without an environment. No limit of time: it belongs to no run."""


@dataclass(slots=True)
class PrivateKeys:
    """Tracks whether the lines of a stream are inside a private key.

    A key ends with its last line, before a line that cannot belong to a key, or after the number of lines of the
    largest key, so that data with the first line of a key do not hide the rest of the log.
    """

    _left: int = field(default=0, init=False)
    _before: str = field(default="", init=False)
    """The prefix of the first line, such as a time, with zeros for its digits: the other lines have the same one."""

    def is_inside(self, line: str) -> bool:
        """Return whether the next line belongs to a key that an earlier line began."""
        was_inside = self._left > 0 and ("-----END" in line or self._is_of_key(line))
        if "PRIVATE KEY" in line and "-----BEGIN" in line:
            self._before = line[: line.index("-----BEGIN")].translate(_DIGITS)
            self._left = 0 if "-----END" in line else _KEY_LINES_MAX
        else:
            self._left = 0 if not was_inside or "-----END" in line else self._left - 1
        return was_inside

    def _is_of_key(self, line: str) -> bool:
        size = len(self._before)
        is_alike = line[:size].translate(_DIGITS) == self._before
        return _OF_KEY.search(line[size:] if is_alike else line) is not None
