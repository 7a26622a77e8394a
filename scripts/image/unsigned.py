"""Unsigned copies of signed jars: Java archives no class of a signed jar.

In PySpark these are the jars of Janino, which compiles the code that Spark generates. No program checks the signatures:
Spark loads jars from its folder, signed or not; the hashes in the lock ensure that they are the published ones.
"""

from __future__ import annotations

import re
import shutil
import zipfile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_SIGNATURE: Final = re.compile(r"META-INF/[^/]+\.(SF|DSA|RSA|EC)", re.IGNORECASE)
_MANIFEST: Final = "META-INF/MANIFEST.MF"
_SECTION: Final = re.compile(rb"\r?\n\r?\n")


def copy_unsigned(jars: Iterable[Path], target: Path) -> tuple[Path, ...]:
    """Make `target` contain an unsigned copy, with the same name, of each signed jar, and nothing else."""
    target.mkdir(parents=True, exist_ok=True)
    copies = tuple(_copy(jar, target / jar.name) for jar in jars if is_signed(jar))
    for leftover in set(target.iterdir()) - set(copies):
        leftover.unlink()
    return copies


def is_signed(jar: Path) -> bool:
    """Return whether a jar has a signature."""
    with zipfile.ZipFile(jar) as archive:
        return any(_SIGNATURE.fullmatch(name) for name in archive.namelist())


def _copy(jar: Path, copy: Path) -> Path:
    """Copy a jar without its signature and without the digests in the manifest (all sections but the first)."""
    fresh = copy.with_suffix(".new")
    with zipfile.ZipFile(jar) as source, zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as result:
        for member in source.infolist():
            if _SIGNATURE.fullmatch(member.filename):
                continue
            body = source.read(member)
            if member.filename == _MANIFEST:
                body = _SECTION.split(body, maxsplit=1)[0] + b"\r\n\r\n"
            plain = zipfile.ZipInfo(member.filename, member.date_time)
            result.writestr(plain, body, zipfile.ZIP_DEFLATED)
    # Java compares the time stamps of jars with those in the archive.
    shutil.copystat(jar, fresh)
    fresh.replace(copy)
    return copy
