"""The rule that gives each row its shard: the build and the reader ask the same one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import pyarrow as pa

from safewriter.snapshots.errors import KeyRangeError
from safewriter.snapshots.routing.hashing import digest, digests, digests_of_integers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from safewriter.snapshots.format.encoding import Key

__all__ = ["HASH_ALGORITHM", "HashRouting", "Routing", "routing_of"]

HASH_ALGORITHM: Final = "xxh3_64"


class Routing(Protocol):
    """One rule. It travels to the executors, so it must be picklable; what is not, it makes there, once per process."""

    @property
    def num_dbs(self) -> int:
        """The number of shards."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that decide, beside the key."""
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
        """Return the rule as the manifest's `sharding` holds it."""
        ...


@dataclass(frozen=True, slots=True)
class HashRouting:
    """A key's digest, modulo the number of shards."""

    num_dbs: int

    @property
    def columns(self) -> tuple[str, ...]:
        """None: the key alone decides."""
        return ()

    def shards(self, keys: pa.Array, columns: Sequence[pa.Array] = ()) -> NDArray[np.int64]:  # noqa: ARG002 - of the protocol
        """Return the shard of each key. Raises `KeyRangeError` for a null."""
        if keys.null_count:
            raise KeyRangeError("a key is null; drop such rows, or give them a key")
        if pa.types.is_integer(keys.type):
            hashes = digests_of_integers(keys.cast(pa.int64()).to_numpy())
        else:
            hashes = digests(keys.to_pylist())
        return (hashes % np.uint64(self.num_dbs)).astype(np.int64)

    def route(self, key: Key, context: Mapping[str, object] | None = None) -> int:  # noqa: ARG002 - of the protocol
        """Return the shard of one key."""
        return digest(key) % self.num_dbs

    def document(self) -> dict[str, Any]:
        """Return the rule as a manifest holds it."""
        return {"strategy": "hash", "hash_algorithm": HASH_ALGORITHM}


def routing_of(sharding: Mapping[str, Any], num_dbs: int) -> Routing:
    """Return the rule that a manifest holds. Raises `ValueError` for one that this code does not know."""
    known = {"strategy", "hash_algorithm", "cel_expr", "cel_columns", "routing_values"}
    if unknown := set(sharding) - known:
        raise ValueError(f"its sharding has the member {min(unknown)!r}, which this code does not know")
    strategy, algorithm = sharding.get("strategy"), sharding.get("hash_algorithm")
    if (strategy, algorithm) != ("hash", HASH_ALGORITHM):
        raise ValueError(f"its sharding is {strategy!r} with {algorithm!r}; this code knows hash with {HASH_ALGORITHM}")
    return HashRouting(num_dbs)
