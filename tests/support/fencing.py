"""A dead attempt on an Iceberg table in a database: the S3 requests of the settler that fences it off."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest

from safewriter.objects.location import Location
from safewriter.objects.s3 import S3ObjectStore
from safewriter.tables.iceberg.catalogs import open_pointer
from safewriter.tables.iceberg.metadata import FenceTag
from safewriter.tables.iceberg.name import TableName
from soal.local.names import CREDENTIALS
from soal.testing.s3 import EmbeddedS3
from tests.support.guarded_s3 import Permissions
from tests.support.iceberg_writer import IDS, add, open_catalog
from tests.support.roles import JOB, LAKE, ROLES, SWEEPER

if TYPE_CHECKING:
    from safewriter.objects import ObjectStore
    from tests.support.guarded_s3 import Need

__all__ = ["needs_of_fencing"]

_NAME = TableName.parse("lite.db.t")


def needs_of_fencing() -> list[Need]:
    """Fence such an attempt off as either role; return the needs of the requests."""
    permissions = Permissions(ROLES, catalog=CREDENTIALS["AWS_ACCESS_KEY_ID"])
    with (
        EmbeddedS3(buckets=[LAKE], rules=[permissions.rule()]) as s3,
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in s3.environment().items():
            patch.setenv(name, value)
        where = {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/lite.db", "warehouse": f"s3://{LAKE}/tables/warehouse"}
        _make(where)
        for role in (JOB, SWEEPER):
            _fence(s3, role, where)
    assert permissions.denied == []
    return permissions.needs


def _make(where: dict[str, str]) -> None:
    table = open_catalog("lite", where).create_table(_NAME.identifier, IDS)
    add(table, "main", f"{table.metadata.location}/data/first.parquet")


def _fence(s3: EmbeddedS3, role: str, where: dict[str, str]) -> None:
    def table_store(uri: str) -> ObjectStore:
        return S3ObjectStore(s3._client(role), Location.parse(uri).bucket)

    pointer = open_pointer(_NAME, where, table_store)
    held = pointer.read()
    assert held is not None
    assert pointer.commit(held, FenceTag(f"sw-{role}", held.metadata["current-snapshot-id"], 1))
