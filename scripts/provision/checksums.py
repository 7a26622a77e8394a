"""Files against a list of SHA-256 sums, in the format of sha256sum: `<64 hex digits>  <file name>` on each line."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scripts.provision.report import SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Difference", "compare", "read_sums", "sha256_of", "write_sums"]

_LINE: Final = re.compile(r"(?P<sum>[0-9a-f]{64})  (?P<name>[^/\s]+)")


@dataclass(frozen=True, slots=True)
class Difference:
    """How a folder differs from a list; `wrong` are files with other content."""

    missing: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.wrong or self.extra)


def read_sums(path: Path) -> dict[str, str]:
    """Read a list as file name -> SHA-256 in hex.

    Raises `SetupError` for a line of another form or a name given twice.
    """
    sums: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None or match["name"] in sums:
            why = "is not '<sha256>  <file name>'" if match is None else f"names {match['name']} again"
            raise SetupError(f"{path}, line {number} {why}", todo="restore the file with git, or run scripts/lock")
        sums[match["name"]] = match["sum"]
    return sums


def write_sums(path: Path, folder: Path) -> int:
    """Write the list of all files in `folder`; return how many."""
    files = sorted(folder.iterdir())
    path.write_text("".join(f"{sha256_of(file)}  {file.name}\n" for file in files), encoding="utf-8")
    return len(files)


def compare(folder: Path, sums: Mapping[str, str]) -> Difference:
    """Read every file of `folder` and return how the folder differs from `sums`."""
    present = {path.name: path for path in folder.iterdir()} if folder.is_dir() else {}
    return Difference(
        missing=tuple(sorted(sums.keys() - present.keys())),
        wrong=tuple(sorted(name for name in sums.keys() & present.keys() if sha256_of(present[name]) != sums[name])),
        extra=tuple(sorted(present.keys() - sums.keys())),
    )


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
