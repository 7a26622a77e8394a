"""The report of `soal orphans` on a Delta table: one document. Its schema is published as `report.schema.json` beside
this file; `python -m soal.orphans.report` prints it. An Iceberg table's report is in `iceberg.py`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from handler.json_document import schema_text
from soal.console.document import Part
from soal.orphans.protection import Kind


class Tally(Part):
    """A number of files, and their total size."""

    files: int
    bytes: int


class Orphan(Part):
    """A file that no retained version refers to, and that is older than the bound."""

    key: str = Field(description="relative to the table")
    kind: Kind = Field(description="marked: its name has the file prefix of an attempt with SafeWriter")
    bytes: int
    last_modified: datetime
    held: str | None = Field(default=None, description="why it stays; null if it may be deleted")
    deleted: bool = False
    error: str | None = Field(default=None, description="why it could not be deleted")


class OrphanUpload(Part):
    """An unfinished multipart upload that began before the bound."""

    key: str = Field(description="relative to the table")
    upload_id: str
    initiated: datetime
    held: str | None = Field(default=None, description="why it stays; null if it may be aborted")
    aborted: bool = False
    error: str | None = Field(default=None, description="why it could not be aborted")


class OpenWriteFound(Part):
    """A write of this table without a verdict, or one that may be of this table (`run_key` null)."""

    write_key: str
    run_key: str | None
    since: datetime = Field(description="nothing younger is deleted")


class OrphanReport(Part):
    """The report on a Delta table. All times are by the store's clock."""

    schema_version: Literal[1] = 1
    table: str
    version: int = Field(description="the newest version that was read")
    now: datetime
    older_than_s: int
    dry_run: bool
    orphans: tuple[Orphan, ...]
    uploads: tuple[OrphanUpload, ...]
    open_writes: tuple[OpenWriteFound, ...] | None = Field(description="null if no checkpoint bucket was read")
    other_tables: tuple[str, ...] = Field(description="folders of other tables inside this table; left alone")
    retained: Tally = Field(description="files that the log refers to")
    young: Tally = Field(description="files that it does not refer to, younger than the bound")
    other: Tally = Field(description="files that are not of this table: hidden, of another table, or of another kind")

    @property
    def has_failed(self) -> bool:
        """Whether something could not be deleted or aborted."""
        errors = [*(orphan.error for orphan in self.orphans), *(upload.error for upload in self.uploads)]
        return any(error is not None for error in errors)


if __name__ == "__main__":
    print(schema_text(OrphanReport), end="")
