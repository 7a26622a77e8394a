"""Routing by an expression: its result is the shard's number, or a value whose index in a list is that number."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from safewriter.snapshots.errors import (
    ConfigValidationError,
    KeyRangeError,
    RoutingContextError,
    ShardAssignmentError,
)
from safewriter.snapshots.routing.expression import KEY_VARIABLE, CelExpression, EvaluationError
from safewriter.snapshots.routing.hashing import HASH_ALGORITHM
from safewriter.snapshots.sharding import CelType, check_routing_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from safewriter.snapshots.format.encoding import Key
    from safewriter.snapshots.sharding import RoutingValue

__all__ = ["CelRouting"]

_PYTHON: Final[dict[CelType, type | tuple[type, ...]]] = {
    CelType.INT: int,
    CelType.UINT: int,
    CelType.STRING: str,
    CelType.BYTES: bytes,
    CelType.DOUBLE: (float, int),
    CelType.BOOL: bool,
}


@dataclass(frozen=True, slots=True)
class CelRouting:
    """The rule of an expression. Raises `ConfigValidationError` if the routing values do not fit the expression."""

    expression: CelExpression
    num_dbs: int
    routing_values: tuple[RoutingValue, ...] | None = None
    _places: dict[RoutingValue, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        values = () if self.routing_values is None else self.routing_values
        is_text = self.expression.kind is CelType.STRING
        if self.routing_values is None and is_text:
            raise ConfigValidationError(
                f"the expression {self.expression.text!r} gives texts, and no shards' numbers: give routing_values,"
                " or infer_routing_values_from_data"
            )
        check_routing_values(values)
        if values and isinstance(values[0], str) is not is_text:
            raise ConfigValidationError(
                f"the routing value {values[0]!r} has not the type {self.expression.kind}, which"
                f" {self.expression.text!r} gives"
            )
        if self.routing_values is not None and self.num_dbs != max(1, len(values)):
            raise ConfigValidationError(f"there are {len(values)} routing values for {self.num_dbs} shards")
        object.__setattr__(self, "_places", {value: place for place, value in enumerate(values)})

    @property
    def columns(self) -> tuple[str, ...]:
        """The expression's variables except `key`."""
        return self.expression.columns

    def shards(self, keys: pa.Array, columns: Sequence[pa.Array] = ()) -> NDArray[np.int64]:
        """Return the shard of each row.

        Raises `KeyRangeError` for a null key, `ShardAssignmentError` for a row that belongs to no shard.
        """
        import numpy as np

        tokens = self.expression.tokens(keys, columns)
        places = [self._place(token) for token in tokens.values]
        if None in places:
            at = places.index(None)
            raise ShardAssignmentError(
                f"the row with key {keys[int(tokens.first[at])].as_py()!r} gives {tokens.values[at]!r}, which is no"
                f" {self._unit()}. If an earlier reading of the source has not found it, the source differs from one"
                " reading to the next, and has to be cached first: cache_input=True"
            )
        return np.array(places, np.int64)[tokens.group]

    def route(self, key: Key, context: Mapping[str, object] | None = None) -> int | None:
        """Return the shard of a key; None if no shard can have it, since a build refuses such a row.

        Raises `KeyRangeError` for a key of another type, `RoutingContextError` for a missing or mistyped column.
        """
        row = {
            name: _key(key, kind) if name == KEY_VARIABLE else self._context_value(name, kind, context)
            for name, kind in self.expression.variables
        }
        try:
            return self._place(self.expression.token(row))
        except EvaluationError:
            return None

    def document(self) -> dict[str, Any]:
        """Return the rule as a manifest has it."""
        document: dict[str, Any] = {
            "strategy": "cel",
            "hash_algorithm": HASH_ALGORITHM,
            "cel_expr": self.expression.text,
            "cel_columns": {name: kind.value for name, kind in self.expression.variables},
        }
        if self.routing_values is not None:
            document["routing_values"] = list(self.routing_values)
        return document

    def _place(self, token: RoutingValue) -> int | None:
        if self.routing_values is not None:
            return self._places.get(token)
        return token if isinstance(token, int) and 0 <= token < self.num_dbs else None

    def _unit(self) -> str:
        return f"shard of {self.num_dbs}" if self.routing_values is None else f"one of {self.num_dbs} routing values"

    def _context_value(self, name: str, kind: CelType, context: Mapping[str, object] | None) -> object:
        if context is None or name not in context:
            raise RoutingContextError(
                f"this snapshot routes by {', '.join(self.columns)} and not by the key alone, and {name!r} was not"
                " given; give routing_context with each of them"
            )
        value = context[name]
        if not _has_type(value, kind):
            raise RoutingContextError(f"routing_context: {name} is {value!r}, and has not the type {kind}")
        return value


def _key(key: Key, kind: CelType) -> Key:
    """Return a key in the type of the rule's variable: a text and its UTF-8 bytes are the same stored key."""
    try:
        if kind is CelType.STRING and isinstance(key, bytes):
            return key.decode()
    except UnicodeDecodeError:
        raise KeyRangeError(f"the key {key!r} is no text, and this snapshot routes keys as texts") from None
    if kind is CelType.BYTES and isinstance(key, str):
        return key.encode()
    if not _has_type(key, kind):
        raise KeyRangeError(f"the key {key!r} has not the type {kind}, by which this snapshot routes keys")
    return key


def _has_type(value: object, kind: CelType) -> bool:
    return isinstance(value, _PYTHON[kind]) and (kind is CelType.BOOL or not isinstance(value, bool))
