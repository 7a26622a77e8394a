"""pyiceberg's writes through SoAL's object store: the product only reads."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final, cast

from pyiceberg.io import InputFile, OutputFile, OutputStream

from safewriter.objects.location import Location
from soal.orphans.iceberg import ObjectFileIO, catalog_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.io import FileIO

__all__ = ["WRITING_IO", "WritingFileIO", "writing_catalog"]


class _Upload(io.BytesIO):
    """A file that is uploaded when it is closed, unless its `with` block raises."""

    def __init__(self, location: str, files: WritingFileIO) -> None:
        super().__init__()
        self._location, self._files = location, files

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is not None:
            super().close()
        else:
            self.close()

    def close(self) -> None:
        if not self.closed:
            store, key = self._files.place(self._location)
            store.put(key, self.getvalue())
            super().close()


class _Output(OutputFile):
    def __init__(self, location: str, files: WritingFileIO) -> None:
        super().__init__(location)
        self._files = files

    def __len__(self) -> int:
        return len(self.to_input_file())

    def exists(self) -> bool:
        return self.to_input_file().exists()

    def to_input_file(self) -> InputFile:
        return self._files.new_input(self.location)

    def create(self, overwrite: bool = False) -> OutputStream:  # noqa: FBT001, FBT002 - every name is new
        return cast("OutputStream", _Upload(self.location, self._files))


class WritingFileIO(ObjectFileIO):
    """`ObjectFileIO` that also writes and deletes."""

    def place(self, location: str) -> tuple[Any, str]:
        """Return the store and the key of a file."""
        place = Location.parse(location)
        return self.table_store(str(Location(place.bucket))), place.key

    def new_output(self, location: str) -> OutputFile:
        return _Output(location, self)

    def delete(self, location: Any) -> None:
        store, key = self.place(location if isinstance(location, str) else location.location)
        store.delete(key)


WRITING_IO: Final = {"py-io-impl": f"{WritingFileIO.__module__}.{WritingFileIO.__qualname__}"}
"""The property that makes a pyiceberg catalog use `WritingFileIO`."""


def writing_catalog(name: str, properties: Mapping[str, str]) -> Catalog:
    """Open a catalog as `soal orphans` does, but to write, too."""
    catalog = catalog_of(name, properties)
    catalog.properties |= WRITING_IO

    def file_io(*_: object, **__: object) -> FileIO:
        return WritingFileIO(catalog.properties)

    catalog._load_file_io = file_io  # type: ignore[method-assign]
    return catalog
