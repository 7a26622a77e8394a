"""Statements by the `deltalake` library, in a process of its own: it holds the interpreter's lock during S3 requests,
and here S3 runs in the tests' own interpreter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import arro3.core
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import DeltaError

from tests.property.operations import MOVED

if TYPE_CHECKING:
    from tests.property.operations import Operation

__all__ = ["ids", "run"]


def ids(uri: str, options: dict[str, str]) -> list[int]:
    """Read the table."""
    found = QueryBuilder().register("t", DeltaTable(uri, storage_options=options)).execute("SELECT id FROM t")
    return [int(id_) for id_ in found.read_all().column("id").to_pylist()]


def run(operation: Operation, uri: str, options: dict[str, str]) -> None:
    """Carry out the equivalent of Spark's statement of the same name."""
    try:
        _run(operation, uri, options)
    except DeltaError as error:  # cannot leave its process
        raise RuntimeError(f"deltalake, {operation}: {error}") from None


def _run(operation: Operation, uri: str, options: dict[str, str]) -> None:
    if operation.kind in ("append", "overwrite", "replace"):
        mode: Any = "append" if operation.kind == "append" else "overwrite"
        schema: Any = "overwrite" if operation.kind == "replace" else None
        write_deltalake(uri, _ids(operation.ids), mode=mode, schema_mode=schema, storage_options=options)
        return
    table = DeltaTable(uri, storage_options=options)
    match operation.kind:
        case "merge":
            merger = table.merge(_ids(operation.ids), "t.id = s.id", source_alias="s", target_alias="t")
            merger = merger.when_matched_update({"id": f"t.id + {MOVED}"})
            merger.when_not_matched_insert({"id": "s.id"}).execute()
        case "delete":
            table.delete(operation.condition)
        case "update":
            table.update(updates={"id": f"id + {MOVED}"}, predicate=operation.condition)
        case "property":
            table.alter.set_table_properties(dict(operation.properties))
        case "restore":
            table.restore(operation.version)
        case "vacuum":
            table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        case _:
            assert operation.kind == "optimize"
            table.optimize.compact()


def _ids(ids: range) -> arro3.core.Table:
    column = arro3.core.Array(list(ids), arro3.core.DataType.int64())
    return arro3.core.Table.from_arrays([column], names=["id"])
