"""Read SlateDB by its own package."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from soal.testing.s3.embedded import EmbeddedS3

__all__ = ["needs_slatedb", "rows_of"]

needs_slatedb = pytest.mark.skipif(
    find_spec("slatedb") is None, reason="the package slatedb is not installed (requirements/slatedb.txt)"
)


def rows_of(url: str, s3: EmbeddedS3) -> dict[bytes, bytes]:
    """Read a whole database, opened read-only; the environment holds the credentials."""
    from slatedb.uniffi import DbReaderBuilder, KeyRange, ObjectStore

    async def read() -> dict[bytes, bytes]:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("AWS_ENDPOINT_URL", s3.endpoint)
            environment.setenv("AWS_ALLOW_HTTP", "true")
            store = ObjectStore.resolve(url)
        reader = await DbReaderBuilder("", store).build()
        try:
            every = KeyRange(start=None, start_inclusive=True, end=None, end_inclusive=True)
            found, rows = await reader.scan(every), {}
            while (row := await found.next()) is not None:
                rows[bytes(row.key)] = bytes(row.value)
        finally:
            await reader.shutdown()
        return rows

    return asyncio.run(asyncio.wait_for(read(), 120))
