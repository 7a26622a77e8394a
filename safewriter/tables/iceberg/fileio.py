"""Iceberg's metadata files on S3, read and written through the same object store as everything else here.

pyiceberg's own ways to S3 are pyarrow (170 MB) and s3fs; metadata files are small, and each is read as a whole.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, cast

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream

from safewriter.objects.location import Location
from safewriter.objects.s3 import open_store

if TYPE_CHECKING:
    from safewriter.objects.store import StoredObject

__all__ = ["ObjectFileIO"]


class _Input(InputFile):
    def _found(self) -> StoredObject | None:
        location = Location.parse(self.location)
        return open_store(Location(location.bucket)).get(location.key)

    def __len__(self) -> int:
        return len(self._body())

    def _body(self) -> bytes:
        found = self._found()
        if found is None:
            raise FileNotFoundError(f"{self.location} is not there, or cannot be read")
        return found.body

    def exists(self) -> bool:
        return self._found() is not None

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002, FBT001, FBT002 - pyiceberg's signature
        return cast("InputStream", io.BytesIO(self._body()))


class _Upload(io.BytesIO):
    """What is written goes to S3 when it is closed; not if the writing has failed."""

    def __init__(self, location: Location) -> None:
        super().__init__()
        self._to = location

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is not None:
            super().close()
        else:
            self.close()

    def close(self) -> None:
        if not self.closed:
            open_store(Location(self._to.bucket)).put(self._to.key, self.getvalue())
            super().close()


class _Output(OutputFile):
    def __len__(self) -> int:
        return len(self.to_input_file())

    def exists(self) -> bool:
        return self.to_input_file().exists()

    def to_input_file(self) -> InputFile:
        return _Input(self.location)

    def create(self, overwrite: bool = False) -> OutputStream:  # noqa: ARG002, FBT001, FBT002 - every name is new
        return cast("OutputStream", _Upload(Location.parse(self.location)))


class ObjectFileIO(FileIO):
    """What pyiceberg loads by the name in `py-io-impl`."""

    def new_input(self, location: str) -> InputFile:
        return _Input(location)

    def new_output(self, location: str) -> OutputFile:
        return _Output(location)

    def delete(self, location: Any) -> None:  # noqa: ANN401 - a path or one of the above
        where = Location.parse(location if isinstance(location, str) else location.location)
        open_store(Location(where.bucket)).delete(where.key)
