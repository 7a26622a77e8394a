"""Values of a snapshot: their columns, and their encoding as bytes.

Spark moves the columns with their row, and its task encodes them: the driver gets no values.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from safewriter.snapshots.errors import ConfigValidationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

__all__ = ["Unencodable", "ValueSpec", "binary_col", "callable_encoder", "check_travels", "json_cols"]

_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


class Unencodable(Exception):  # noqa: N818 - RowFormat raises it as an error with the row's key
    """The row with this number in its batch cannot be encoded."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(problem)
        self.row = row


class ValueSpec(Protocol):
    """One encoding of values. It must be picklable, since Spark sends it to the executors."""

    is_comparable: ClassVar[bool]
    """Whether equal columns have equal bytes, in each build."""

    def column(self, df: DataFrame, key_col: str) -> Column:
        """Return the column that `encode` gets. Raises `ConfigValidationError`."""
        ...

    def encode(self, values: pa.Array) -> list[bytes]:
        """Return the bytes of each value, in a task. Raises `Unencodable`."""
        ...


@dataclass(frozen=True, slots=True)
class _BinaryColumn:
    is_comparable: ClassVar[bool] = True
    name: str

    def column(self, df: DataFrame, key_col: str) -> Column:  # noqa: ARG002 - of the protocol
        from pyspark.sql import functions, types

        from safewriter.snapshots.write.columns import check_column, existing

        check_column(df, self.name)
        kind = df.schema[self.name].dataType
        if not isinstance(kind, types.StringType | types.BinaryType):
            raise ConfigValidationError(
                f"binary_col: the column {self.name!r} has the type {kind.simpleString()}, which is neither bytes nor"
                " text. Cast it"
            )
        return functions.coalesce(existing(df, self.name).cast("binary"), functions.lit(b""))

    def encode(self, values: pa.Array) -> list[bytes]:
        bodies: list[bytes] = values.to_pylist()
        return bodies


@dataclass(frozen=True, slots=True)
class _JsonColumns:
    is_comparable: ClassVar[bool] = True
    names: tuple[str, ...] | None

    def column(self, df: DataFrame, key_col: str) -> Column:
        names = tuple(name for name in df.columns if name != key_col) if self.names is None else self.names
        if not names:
            raise ConfigValidationError(f"json_cols: there is no column beside the key {key_col!r}")
        column = _struct(df, names)
        for field in df.schema:
            if field.name in names and (problem := _no_json(field.dataType)):
                raise ConfigValidationError(
                    f"json_cols: the column {field.name!r} has {problem}, which JSON has not. Cast it, or leave it out"
                )
        return column

    def encode(self, values: pa.Array) -> list[bytes]:
        encode = _ENCODER.encode
        bodies: list[bytes] = []
        for number, row in enumerate(_dicts(values)):
            try:
                bodies.append(encode(row).encode())
            except ValueError as error:  # NaN and the infinities
                raise Unencodable(number, f"json_cols: {error}") from None
        return bodies


@dataclass(frozen=True, slots=True)
class _Callable:
    is_comparable: ClassVar[bool] = False
    function: Callable[[dict[str, Any]], bytes | str]

    def column(self, df: DataFrame, key_col: str) -> Column:  # noqa: ARG002 - of the protocol
        return _struct(df, df.columns)

    def encode(self, values: pa.Array) -> list[bytes]:
        bodies: list[bytes] = []
        for number, row in enumerate(_dicts(values)):
            try:
                value = self.function(row)
            except Exception as error:
                raise Unencodable(number, f"{_name_of(self.function)} failed: {error!r}") from error
            if not isinstance(value, bytes | str):
                raise Unencodable(
                    number, f"{_name_of(self.function)} made {type(value).__name__}, and not bytes or text"
                )
            bodies.append(value.encode() if isinstance(value, str) else value)
        return bodies


def binary_col(name: str) -> ValueSpec:
    """Take the values from a binary or string column; null is an empty value."""
    return _BinaryColumn(name)


def json_cols(cols: Sequence[str] | None = None) -> ValueSpec:
    """Encode each value as a JSON object of columns, by default of all but the key.

    Its members are sorted, without blanks between them, and non-ASCII characters are escaped. Columns may be numbers
    except decimals, text, booleans, or arrays, structs and maps of these. NaN and the infinities fail the build.
    """
    if isinstance(cols, str) or (cols is not None and not cols):
        raise ConfigValidationError(f"json_cols asks for a list of columns, or for none of all; it got {cols!r}")
    return _JsonColumns(None if cols is None else tuple(dict.fromkeys(cols)))


def callable_encoder(fn: Callable[[dict[str, Any]], bytes | str]) -> ValueSpec:
    """Encode each value by a function of a dictionary of all the row's columns, including the key.

    A timestamp is a `datetime` in the session's time zone. Spark sends the function to the executors. Raises
    `ConfigValidationError` at once if it cannot be pickled.
    """
    check_travels("callable_encoder", fn)
    return _Callable(fn)


def _struct(df: DataFrame, names: Sequence[str]) -> Column:
    from pyspark.sql import functions

    from safewriter.snapshots.write.columns import existing

    return functions.struct(*(existing(df, name).alias(name) for name in names))


def _dicts(values: pa.Array) -> Iterator[dict[str, Any]]:
    names = [field.name for field in values.type]
    try:
        columns = [column.to_pylist(maps_as_pydicts="strict") for column in values.flatten()]
    except (ValueError, OverflowError):
        raise _no_python(values) from None
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def _no_python(values: pa.Array) -> Unencodable:
    """Return the error for the first row with a text that is not UTF-8, or a moment that Python does not support."""
    for number, row in enumerate(values):
        for name, value in row.items():
            try:
                value.as_py(maps_as_pydicts="strict")
            except (ValueError, OverflowError):
                return Unencodable(number, f"the column {name!r} has a {value.type} that Python has not")
    raise AssertionError


def _no_json(kind: DataType) -> str | None:
    """Return the part of a type that JSON does not support, or None."""
    from pyspark.sql import types

    if isinstance(kind, types.ArrayType):
        return _no_json(kind.elementType)
    if isinstance(kind, types.MapType):
        nested = isinstance(kind.keyType, types.ArrayType | types.StructType)
        return f"the type {kind.simpleString()}" if nested else _no_json(kind.keyType) or _no_json(kind.valueType)
    if isinstance(kind, types.StructType):
        return next((problem for field in kind if (problem := _no_json(field.dataType))), None)
    plain = (types.IntegralType, types.FractionalType, types.StringType, types.BooleanType, types.NullType)
    if isinstance(kind, plain) and not isinstance(kind, types.DecimalType):
        return None
    return f"the type {kind.simpleString()}"


def check_travels(role: str, value: object) -> None:
    """Raise `ConfigValidationError` if the value cannot be pickled. `role`: the setting's name, for the message."""
    from pyspark import cloudpickle

    try:
        cloudpickle.dumps(value)
    except Exception as error:
        raise ConfigValidationError(
            f"{role}: {_name_of(value)} cannot travel to the executors: {error}. It must be picklable"
        ) from error


def _name_of(value: object) -> str:
    """Return the name of a function, for messages."""
    return getattr(value, "__qualname__", None) or repr(value)
