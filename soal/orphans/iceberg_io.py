"""Iceberg's metadata files on S3 for pyiceberg, read and written through the object store of everything else here.

pyiceberg's own ways to S3 are pyarrow (170 MB) and s3fs; metadata files are small, and each is read as a whole.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final, cast

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream

from safewriter.objects import s3
from safewriter.objects.location import Location

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.typedef import Properties

    from safewriter.objects.store import ObjectStore, StoredObject

__all__ = ["OBJECT_IO", "ObjectFileIO"]


class _Place:
    """One object, and the store that it lies in."""

    def __init__(self, location: str, table_store: Callable[[str], ObjectStore]) -> None:
        where = Location.parse(location)
        self.key = where.key
        self.store = table_store(str(Location(where.bucket)))

    def found(self) -> StoredObject | None:
        return self.store.get(self.key)


class _Input(InputFile):
    def __init__(self, location: str, place: _Place) -> None:
        super().__init__(location)
        self._place = place

    def __len__(self) -> int:
        return len(self._body())

    def _body(self) -> bytes:
        found = self._place.found()
        if found is None:
            raise FileNotFoundError(f"{self.location} does not exist, or cannot be read")
        return found.body

    def exists(self) -> bool:
        return self._place.found() is not None

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002, FBT001, FBT002 - pyiceberg's signature
        return cast("InputStream", io.BytesIO(self._body()))


class _Upload(io.BytesIO):
    """A file that goes to S3 when it is closed, unless the writing has failed."""

    def __init__(self, place: _Place) -> None:
        super().__init__()
        self._place = place

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is not None:
            super().close()
        else:
            self.close()

    def close(self) -> None:
        if not self.closed:
            self._place.store.put(self._place.key, self.getvalue())
            super().close()


class _Output(OutputFile):
    def __init__(self, location: str, place: _Place) -> None:
        super().__init__(location)
        self._place = place

    def __len__(self) -> int:
        return len(self.to_input_file())

    def exists(self) -> bool:
        return self.to_input_file().exists()

    def to_input_file(self) -> InputFile:
        return _Input(self.location, self._place)

    def create(self, overwrite: bool = False) -> OutputStream:  # noqa: ARG002, FBT001, FBT002 - every name is new
        return cast("OutputStream", _Upload(self._place))


class ObjectFileIO(FileIO):
    """pyiceberg loads this class by the name in `py-io-impl`; `table_store` opens an object store by its URI."""

    def __init__(self, properties: Properties, table_store: Callable[[str], ObjectStore] | None = None) -> None:
        super().__init__(properties)
        self._table_store = table_store or s3.table_store

    def new_input(self, location: str) -> InputFile:
        return _Input(location, _Place(location, self._table_store))

    def new_output(self, location: str) -> OutputFile:
        return _Output(location, _Place(location, self._table_store))

    def delete(self, location: Any) -> None:  # noqa: ANN401 - a path or one of the above
        place = _Place(location if isinstance(location, str) else location.location, self._table_store)
        place.store.delete(place.key)


OBJECT_IO: Final = {"py-io-impl": f"{ObjectFileIO.__module__}.{ObjectFileIO.__qualname__}"}
"""The property by which a catalog of pyiceberg uses it."""
