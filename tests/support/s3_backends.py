"""The backends by name."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from scripts.provision.__main__ import main as setup
from soal.testing.s3.backend import Backend, Moto
from tests.support.s3_proxy import S3Proxy, s3_proxy_jars

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

BACKENDS: Final = ("moto", "s3proxy")


def opened_backend(name: str) -> AbstractContextManager[Backend]:
    """Return a context manager that yields the backend; S3Proxy is fetched first if it is missing.

    Raises `RuntimeError` if it cannot be fetched.
    """
    if name == "moto":
        return nullcontext(Moto())
    if not s3_proxy_jars() and setup(["--only", "s3proxy-jars"]) != 0:
        raise RuntimeError("S3Proxy could not be fetched; the lines above say why")
    return S3Proxy()
