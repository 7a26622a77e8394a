"""The files that the experiment appends: generated from a seed, with the paper's 14 columns, or given by the user."""

from __future__ import annotations

import csv
import io
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from scripts.accommodations import SEED, Accommodation, csv_bytes, generate

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BASE_ROWS", "Dataset", "generated", "given"]

BASE_ROWS: Final = 5
"""The rows of the table before the append."""
_ARROW: Final = {int: pa.int32(), str: pa.string(), float: pa.float64(), date: pa.date32()}
_SPARK: Final = {pa.int32(): "INT", pa.string(): "STRING", pa.float64(): "DOUBLE", pa.date32(): "DATE"}


class Dataset:
    """A CSV file with semicolons and a header, its number of rows, and the types of its columns."""

    def __init__(self, body: bytes, rows: int, schema: pa.Schema, base: list[dict[str, Any]]) -> None:
        self.body = body
        self.rows = rows
        self.base = pa.Table.from_pylist(base, schema=schema)
        """The table's rows before the append."""

    @property
    def ddl(self) -> str:
        """The schema as Spark's DDL."""
        return ", ".join(f"`{field.name}` {_SPARK[field.type]}" for field in self.base.schema)


def generated(rows: int, *, seed: int = SEED) -> Dataset:
    """Generate `rows` accommodations."""
    base = [
        {name: getattr(one, name) for name in Accommodation.__slots__} for one in generate(BASE_ROWS, seed=seed + 1)
    ]
    schema = pa.schema([(field, _type(base, field)) for field in Accommodation.__slots__])
    return Dataset(csv_bytes(rows, seed=seed), rows, schema, base)


def given(path: Path) -> Dataset:
    """Read a file with all columns as text. Raises `ValueError` if it is no CSV file of this form."""
    body = path.read_bytes()
    rows = list(csv.reader(io.StringIO(body.decode("utf-8-sig"), newline=""), delimiter=";"))
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows) or len(set(rows[0])) < len(rows[0]):
        raise ValueError(f"{path} is no CSV file with a header, semicolons and as many fields in each line")
    schema = pa.schema([(name, pa.string()) for name in rows[0]])
    base = [dict.fromkeys(rows[0], f"base {number}") for number in range(BASE_ROWS)]
    return Dataset(body, len(rows) - 1, schema, base)


def _type(base: list[dict[str, Any]], name: str) -> pa.DataType:
    kind = next(type(row[name]) for row in base if row[name] is not None)
    return _ARROW[kind]
