"""The rule that maps rows to shards, which builds and readers share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from safewriter.snapshots.errors import ConfigValidationError, KeyRangeError
from safewriter.snapshots.routing.cel import CelRouting
from safewriter.snapshots.routing.expression import CelExpression
from safewriter.snapshots.routing.hashing import HASH_ALGORITHM, digest, remainders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from safewriter.snapshots.format.encoding import Key

__all__ = ["HashRouting", "Routing", "routing_of"]


class Routing(Protocol):
    """One rule. It must be picklable, for the executors; they make parts that are not once per process."""

    @property
    def num_dbs(self) -> int:
        """The number of shards."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns beside the key that the rule reads."""
        ...

    def shards(self, keys: pa.Array, columns: Sequence[pa.Array]) -> NDArray[np.int64]:
        """Return the shard of each row; `columns` in the order of `self.columns`.

        Raises `KeyRangeError` for a null key, `ShardAssignmentError` for a row that belongs to no shard.
        """
        ...

    def route(self, key: Key, context: Mapping[str, object] | None = None) -> int | None:
        """Return the shard of one key, for a reader; None if no shard can have it. `context`: values of `columns`."""
        ...

    def document(self) -> dict[str, Any]:
        """Return the rule as the manifest's `sharding`."""
        ...


@dataclass(frozen=True, slots=True)
class HashRouting:
    """A key's digest, modulo the number of shards."""

    num_dbs: int

    @property
    def columns(self) -> tuple[str, ...]:
        """Empty: the rule reads only the key."""
        return ()

    def shards(self, keys: pa.Array, columns: Sequence[pa.Array] = ()) -> NDArray[np.int64]:  # noqa: ARG002 - of the protocol
        """Return the shard of each key. Raises `KeyRangeError` for a null."""
        if keys.null_count:
            raise KeyRangeError("a key is null; drop such rows, or give them a key")
        return remainders(keys, self.num_dbs)

    def route(self, key: Key, context: Mapping[str, object] | None = None) -> int:  # noqa: ARG002 - of the protocol
        """Return the shard of one key."""
        return digest(key) % self.num_dbs

    def document(self) -> dict[str, Any]:
        """Return the rule as a manifest has it."""
        return {"strategy": "hash", "hash_algorithm": HASH_ALGORITHM}


def routing_of(sharding: Mapping[str, Any], num_dbs: int) -> Routing:
    """Return the rule of a manifest's `sharding`. Raises `ValueError` for one that this code does not know."""
    known = {"strategy", "hash_algorithm", "cel_expr", "cel_columns", "routing_values"}
    if unknown := set(sharding) - known:
        raise ValueError(f"its sharding has the member {min(unknown)!r}, which this code does not know")
    strategy, algorithm = sharding.get("strategy"), sharding.get("hash_algorithm")
    if strategy not in ("hash", "cel") or algorithm != HASH_ALGORITHM:
        raise ValueError(
            f"its sharding is {strategy!r} with {algorithm!r}; this code knows hash and cel with {HASH_ALGORITHM}"
        )
    return HashRouting(num_dbs) if strategy == "hash" else _cel_routing(sharding, num_dbs)


def _cel_routing(sharding: Mapping[str, Any], num_dbs: int) -> CelRouting:
    text, columns, values = (sharding.get(name) for name in ("cel_expr", "cel_columns", "routing_values"))
    if not (isinstance(text, str) and isinstance(columns, dict) and isinstance(values, list | None)):
        raise ValueError(  # noqa: TRY004 - as for all else that is wrong with it
            f"its sharding lacks an expression with columns: {dict(sharding)!r}"
        )
    try:
        return CelRouting(CelExpression.of(text, columns), num_dbs, None if values is None else tuple(values))
    except ConfigValidationError as error:
        raise ValueError(f"its sharding cannot be: {error}") from error
