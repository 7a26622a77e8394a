"""The zip file from which Lambda builds a MicroVM image: a Dockerfile on top of the function's image, and the warm-up's
S3.
"""

from __future__ import annotations

import io
import re
import zipfile
from typing import TYPE_CHECKING, Final

from scripts.provision.place import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DOCKERFILE: Final = ROOT / "image" / "microvm" / "Dockerfile"
_IMAGE: Final = re.compile(r"^ARG IMAGE=\S+$", re.MULTILINE)
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._:/@-]*")
_FILES: Final = (
    "requirements/local.txt",
    "image/archive/train.py",
    "soal/__init__.py",
    "soal/local/__init__.py",
    "soal/local/names.py",
    "soal/testing/__init__.py",
    "soal/testing/s3/*.py",
)
_MODE: Final = 0o100644 << 16


def bundle(image: str) -> bytes:
    """Return the zip file for an image, by its name in a registry; equal files give equal bytes. Raises `ValueError`
    for a name that is none.
    """
    if not _NAME.fullmatch(image):
        raise ValueError(f"{image!r} is not the name of an image")
    dockerfile = _IMAGE.sub(f"ARG IMAGE={image}", DOCKERFILE.read_text(encoding="utf-8"), count=1)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "Dockerfile", dockerfile.encode())
        for path in _files():
            _add(archive, path.relative_to(ROOT).as_posix(), path.read_bytes())
    return buffer.getvalue()


def _files() -> Iterator[Path]:
    for pattern in _FILES:
        yield from sorted(ROOT.glob(pattern))


def _add(archive: zipfile.ZipFile, name: str, body: bytes) -> None:
    entry = zipfile.ZipInfo(name)  # of 1980
    entry.external_attr = _MODE
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, body)
