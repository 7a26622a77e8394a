"""A neighbour of a guarded job: another process with another engine, deltalake, that writes to the same table."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.lake import LAKE

if TYPE_CHECKING:
    from tests.support.lake import Lake

__all__ = ["append_beside"]

_APPEND = """
import json, sys
from arro3.core import Array, DataType, Table
from deltalake import DeltaTable, write_deltalake
uri, options, ids = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
columns = {"id": Array(ids, type=DataType.int64()), "part": Array([i % 3 for i in ids], type=DataType.int64())}
table = DeltaTable(uri, storage_options=options)
known = [field.name for field in table.schema().fields]
write_deltalake(table, Table.from_pydict({name: columns[name] for name in known}), mode="append")
"""


def append_beside(lake: Lake, rows: int) -> None:
    """Append `rows` rows: `id`, and `part` if the table has it.

    It uses a process of its own: deltalake holds the interpreter's lock, which would block the tests' S3.
    """
    arguments = [f"s3://{LAKE}/{lake.name}", json.dumps(lake.options()), json.dumps(list(range(rows)))]
    subprocess.run([sys.executable, "-P", "-c", _APPEND, *arguments], check=True, capture_output=True, timeout=120)
