"""Recognise by its exceptions that a job needs a dependency which the image does not have.

Such a job fails with a ClassNotFoundException or an even vaguer error. The helpful sentence is known when the image is
built, so image/spark/missing.toml holds it beside the list of jars that are left out. Anything not listed is reported
by name.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

__all__ = ["SLIM", "Missing", "Raised", "Variant", "explain", "read_missing"]

Variant = Literal["slim", "full"]
"""The variants of the image."""
SLIM: Final = "slim"
"""The default."""
_CLASS: Final = r"([\w$]+(?:[./][\w$]+)+)"
# How a line of an exception begins: behind that it may quote any data.
_HEAD: Final = r"(?:[\w.$]+: )?"
_NO_CLASS: Final = re.compile(
    rf"(?:java\.lang\.(?:ClassNotFoundException|NoClassDefFoundError): "
    rf"|{_HEAD}(?:Cannot find catalog plugin class for catalog \S+ |(?:Can not|Cannot) load class "
    rf"|\[CANNOT_LOAD_FUNCTION_CLASS\W+Cannot load class )){_CLASS}"
)
_CLASS_NAME: Final = re.compile(_HEAD)
_NO_MODULE: Final = re.compile(r"No module named '([^']+)'")
_NO_MODULE_ON_A_WORKER: Final = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")
_NO_PACKAGE: Final = re.compile(rf"{_HEAD}\[PACKAGE_NOT_INSTALLED\] ([\w.-]+)")
_NO_SOURCE: Final = re.compile(
    rf"{_HEAD}(?:\[DATA_SOURCE_NOT_FOUND\] )?Failed to find (?:the )?data source: ([\w.$-]+\w)"
)
_NO_PACKAGE_OF_JAVA: Final = "'JavaPackage' object is not callable"
_BRING: Final = (
    "which neither the image nor the job's pyFiles have: name it in pyFiles if it is pure Python (.py, .zip, .egg,"
    " .whl), or derive an image with it (image/derived)"
)
_UNLISTED_MODULE: Final = f"the script imports {{}}, {_BRING}"
_UNLISTED_PACKAGE: Final = f"PySpark needs the package {{}} here, {_BRING}"
_UNLISTED_SOURCE: Final = (
    "the image does not have the data source {}: correct its name, or derive an image with its jar (image/derived)"
)
_UNLISTED_CLASS: Final = (
    "the image does not have the Java class {}: correct its name, or derive an image with its jar (image/derived)"
)


@dataclass(frozen=True, slots=True)
class Missing:
    """A dependency that the image does not have.

    `variants`: the image's variants that do have it. `jars`: the jars of PySpark that are left out; `classes`: prefixes
    of its class names; `modules` and `formats`: names of its Python modules and data sources; `signs`: other
    beginnings of an exception's line, or parts of the places in PySpark's code that it passed; `instead`: the advice
    for a job without it; `derivable`: a derived image can have it.
    """

    what: str
    instead: str
    variants: tuple[str, ...] = ()
    jars: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    derivable: bool = True

    @property
    def sentence(self) -> str:
        """The whole advice, for a result."""
        if not self.variants:
            derived = ". A derived image can add it (image/derived)" if self.derivable else ""
            return f"the image does not have {self.what}: {self.instead}{derived}"
        variant = self.variants[0]
        return (
            f"the image does not have {self.what}: its variant {variant} does (soal image build --variant {variant},"
            f" context key image_variant={variant}). Without it: {self.instead}"
        )

    def has_module(self, name: str) -> bool:
        """Return whether a Python module or package is, or is inside, one of `modules`."""
        name = name.lower()
        return any(name == module or name.startswith(f"{module}.") for module in self.modules)

    def has_format(self, name: str) -> bool:
        """Return whether a data source is one of `formats`; Spark ignores case."""
        return name.lower() in self.formats

    def has_class(self, name: str) -> bool:
        """Return whether the name of a Java class begins with one of `classes`."""
        return name.startswith(self.classes)


def read_missing(path: Path, variant: Variant = SLIM) -> tuple[Missing, ...]:
    """Read the list of dependencies that a variant does not have."""
    with path.open("rb") as file:
        rows = tomllib.load(file)["missing"]
    dependencies = (
        Missing(
            row.pop("what"),
            row.pop("instead"),
            derivable=row.pop("derivable", True),
            **{key: tuple(value) for key, value in row.items()},
        )
        for row in rows
    )
    return tuple(row for row in dependencies if variant not in row.variants)


@dataclass(frozen=True, slots=True)
class Raised:
    """One of the exceptions that ended a script, as `handler/driver/raised.py` describes it."""

    type: str
    of_spark: bool
    text: str


def explain(errors: Iterable[Raised], missing: tuple[Missing, ...]) -> str | None:
    """Return a sentence about the dependency that the image lacks, by the exceptions that ended the script, the
    outermost first; None if they show none. `missing`: the list.
    """
    return next(filter(None, (_explained(error, missing) for error in errors)), None)


def _explained(error: Raised, missing: tuple[Missing, ...]) -> str | None:
    """Explain one exception. The script's own exceptions may hold any text, so trust only those of import and Spark."""
    is_import = error.type == "ModuleNotFoundError"
    if not is_import and not error.of_spark:
        return None
    unlisted: list[str] = []
    for line in error.text.splitlines():
        listed = next((row for row in missing if any(_shows(line, sign) for sign in row.signs)), None)
        for name, is_listed, otherwise in _names(line, is_import=is_import):
            listed = listed or next((row for row in missing if is_listed(row, name)), None)
            unlisted.append(otherwise.format(name))
        if listed is not None:
            return listed.sentence
    return unlisted[0] if unlisted else None


def _shows(line: str, sign: str) -> bool:
    """Return whether a line begins with a sign, behind the name of its class or not, or is a place with the sign."""
    if sign.startswith("/"):
        return line.startswith("/") and sign in line
    head = _CLASS_NAME.match(line)
    return any(text.removeprefix("[").startswith(sign) for text in (line, line[head.end() if head else 0 :]))


def _names(line: str, *, is_import: bool) -> Iterator[tuple[str, Callable[[Missing, str], bool], str]]:
    """Yield the missing things in a line: name, how to look it up in the list, and the sentence if it is not listed."""
    if match := (_NO_MODULE if is_import else _NO_MODULE_ON_A_WORKER).match(line):
        yield match[1], Missing.has_module, _UNLISTED_MODULE
    if is_import:
        return
    if match := _NO_PACKAGE.match(line):
        yield match[1], Missing.has_module, _UNLISTED_PACKAGE
    if match := _NO_SOURCE.match(line):
        yield match[1], Missing.has_format, _UNLISTED_SOURCE
    if match := _NO_CLASS.match(line):
        yield match[1].replace("/", "."), Missing.has_class, _UNLISTED_CLASS
    if line.startswith(_NO_PACKAGE_OF_JAVA):
        yield "that the script calls", lambda _row, _name: False, _UNLISTED_CLASS
