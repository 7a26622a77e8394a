"""Read a table with deltalake (delta-rs), in a process of its own: `python -m tests.lab.turns.reader TABLE`.

deltalake may hold the interpreter's lock while it reads, which would block an S3 in the same process.
"""

from __future__ import annotations

import json
import os
import sys

from deltalake import DeltaTable, Field, QueryBuilder, Schema
from deltalake.schema import PrimitiveType

__all__: list[str] = []


def main(action: str, table: str) -> None:
    """`create` an empty table, or print all its rows as JSON (`read`): id, contact, mutations."""
    options = {
        "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL_S3"],
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": os.environ["AWS_ACCESS_KEY_ID"],
        "AWS_SECRET_ACCESS_KEY": os.environ["AWS_SECRET_ACCESS_KEY"],
    }
    if action == "create":
        kinds = {"id": "string", "contact": "string", "mutations": "integer"}
        schema = Schema([Field(name, PrimitiveType(kind)) for name, kind in kinds.items()])
        DeltaTable.create(table, schema, storage_options=options)
        return
    query = QueryBuilder().register("engagement", DeltaTable(table, storage_options=options))
    found = query.execute("SELECT id, contact, mutations FROM engagement ORDER BY id").read_all()
    columns = [found.column(name).to_pylist() for name in ("id", "contact", "mutations")]
    print(json.dumps(list(zip(*columns, strict=True))))


if __name__ == "__main__":
    main(*sys.argv[1:])
