"""Dependencies that the image does not have, and the signs in a job's output that it needs one.

A job that needs one fails with a ClassNotFoundException, or with an even vaguer error. The helpful sentence is known
when the image is made; so image/spark/missing.toml holds it beside the list of jars that are left out. A thing that is
not on the list is known by the exception that ended the script.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SLIM", "Missing", "MissingWatch", "Variant", "not_found", "read_missing"]

Variant = Literal["slim", "full"]
"""The variants of the image."""
SLIM: Final = "slim"
"""The default."""
_NO_CLASS: Final = re.compile(r"(?:ClassNotFoundException|NoClassDefFoundError)[^\w]+([\w.$/]+)")
_NO_MODULE: Final = re.compile(r"No module named '([\w.]+)'")
_NO_SOURCE: Final = re.compile(r"Failed to find (?:the )?data source: ([\w.$-]+\w)")
_MODULE_ERROR: Final = b"ModuleNotFoundError: "


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that the image does not have.

    `variants`: the image's variants that have it all the same. `jars`: PySpark's jars of it that are left out;
    `classes`: prefixes of the names of its classes; `modules` and `formats`: names of its Python modules and data
    sources; `signs`: other texts in a job's output that show it; `instead`: the advice for a job without it.
    """

    what: str
    instead: str
    variants: tuple[str, ...] = ()
    jars: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The whole advice, for a result."""
        if not self.variants:
            return f"the image does not have {self.what}: {self.instead}. A derived image can add it (image/derived)"
        variant = self.variants[0]
        return (
            f"the image does not have {self.what}: its variant {variant} does (soal image build --variant {variant},"
            f" context key image_variant={variant}). Without it: {self.instead}"
        )

    def has_module(self, name: str) -> bool:
        """Tell whether a Python module is one of these, or inside one."""
        return any(name == module or name.startswith(f"{module}.") for module in self.modules)


def read_missing(path: Path, variant: Variant = SLIM) -> tuple[Missing, ...]:
    """Read the list of what a variant does not have."""
    with path.open("rb") as file:
        rows = tomllib.load(file)["missing"]
    found = (
        Missing(row.pop("what"), row.pop("instead"), **{key: tuple(value) for key, value in row.items()})
        for row in rows
    )
    return tuple(row for row in found if variant not in row.variants)


def not_found(kind: str, message: str) -> str | None:
    """Say what to do about a thing that is on no list, by the type and the message of the exception that ended the
    script; None if it tells of none.
    """
    if kind == "ModuleNotFoundError" and (match := _NO_MODULE.search(message)):
        return (
            f"the script imports {match[1]}, which neither the image nor the job's pyFiles have: name it in pyFiles if"
            " it is pure Python (.py, .zip, .egg, .whl), or derive an image with it (image/derived)"
        )
    if match := _NO_SOURCE.search(message):
        return (
            f"the image does not have the data source {match[1]}: correct its name, or derive an image with its jar"
            " (image/derived)"
        )
    if match := _NO_CLASS.search(message):
        return (
            f"the image does not have the Java class {_dotted(match[1])}: correct its name, or derive an image with its"
            " jar (image/derived)"
        )
    return None


class MissingWatch:
    """Checks each line of a job's output; `seen` is the first missing thing that one of them shows."""

    def __init__(self, missing: tuple[Missing, ...]) -> None:
        self._missing = missing
        signs = [re.escape(sign.encode()) for row in missing for sign in row.signs]
        self._sign = re.compile(b"|".join(signs)) if signs else None
        self.seen: Missing | None = None

    def look(self, line: bytes) -> None:
        if self.seen is not None:
            return
        if b"NotFoundException" in line or b"NoClassDefFoundError" in line:
            self._look_for_class(line.decode("ascii", "replace"))
        elif line.startswith(_MODULE_ERROR) and (module := _NO_MODULE.search(line.decode("ascii", "replace"))):
            self.seen = next((row for row in self._missing if row.has_module(module[1])), None)
        if self.seen is None and self._sign is not None and (match := self._sign.search(line)):
            sign = match[0].decode()
            self.seen = next(row for row in self._missing if sign in row.signs)

    def _look_for_class(self, line: str) -> None:
        if match := _NO_CLASS.search(line):
            name = _dotted(match[1])
            self.seen = next((row for row in self._missing if name.startswith(row.classes)), None)


def _dotted(name: str) -> str:
    return name.replace("/", ".").rstrip(".")
