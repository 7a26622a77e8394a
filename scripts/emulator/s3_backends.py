"""The S3s behind the wire, by name."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from scripts.emulator.seaweedfs import SeaweedFS
from soal.testing.s3.backend import Backend, Moto

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

BACKENDS: Final = ("moto", "seaweedfs")


def opened_backend(name: str) -> AbstractContextManager[Backend]:
    """Return a context manager that yields the backend. Raises as `SeaweedFS` does."""
    return nullcontext(Moto()) if name == "moto" else SeaweedFS()
