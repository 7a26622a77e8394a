"""The digest of integer keys as an expression of Spark, so that rows find their shards without a Python process.

It is `digests_of_integers` with Spark's operations, whatever its ANSI mode: that mode refuses a product of more than 63
bits, so each product here has 48 bits at most. Each row's shard is computed once more in its task, by NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.snapshots.routing.hashing import FLIP, PRIME

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["with_shard"]

_HALF: Final = 0xFFFFFFFF
_WORD: Final = 0xFFFF


def with_shard(rows: DataFrame, key: str, shard: str, num_dbs: int) -> DataFrame:
    """Return the rows with a column `shard`, for an integer column `key`; 0 for a null, which its task refuses."""
    from pyspark.sql import functions

    def then(before: DataFrame, value: Column) -> DataFrame:
        """Each step is a projection of its own: an expression that uses the one before several times would explode."""
        return before.withColumn(shard, value)

    def product(value: Column) -> Column:
        """Return `value * PRIME` modulo 2^64, from products of half a factor and a quarter of the other."""
        low, high = value.bitwiseAND(_HALF), functions.shiftrightunsigned(value, 32)
        quarters = [functions.lit(PRIME >> bits & _WORD).cast("bigint") for bits in (0, 16, 32, 48)]
        first = low * quarters[0] + _shifted((low * quarters[1]).bitwiseAND(_WORD))
        second = (
            functions.shiftrightunsigned(first, 32)
            + functions.shiftrightunsigned(low * quarters[1], 16)
            + (low * quarters[2]).bitwiseAND(_HALF)
            + _shifted((low * quarters[3]).bitwiseAND(_WORD))
            + (high * quarters[0]).bitwiseAND(_HALF)
            + _shifted((high * quarters[1]).bitwiseAND(_WORD))
        )
        return functions.shiftleft(second, 32).bitwiseOR(first.bitwiseAND(_HALF))

    value = functions.col(shard)
    rows = then(rows, _rotated(functions.col(key).cast("bigint"), 32).bitwiseXOR(_signed(FLIP)))
    rows = then(rows, value.bitwiseXOR(_rotated(value, 49)).bitwiseXOR(_rotated(value, 24)))
    rows = then(rows, product(value))
    rows = then(rows, value.bitwiseXOR(functions.shiftrightunsigned(value, 35) + 8))
    rows = then(rows, product(value))
    rows = then(rows, value.bitwiseXOR(functions.shiftrightunsigned(value, 28)))
    # The digest has no sign: its upper 63 bits, then the lowest.
    upper = functions.shiftrightunsigned(value, 1) % num_dbs
    remainder = ((upper * 2 + value.bitwiseAND(1)) % num_dbs).cast("int")
    return then(rows, functions.coalesce(remainder, functions.lit(0)))


def _signed(bits: int) -> int:
    return bits - 2**64 if bits >= 2**63 else bits


def _shifted(word: Column) -> Column:
    from pyspark.sql import functions

    return functions.shiftleft(word, 16)


def _rotated(value: Column, bits: int) -> Column:
    from pyspark.sql import functions

    return functions.shiftleft(value, bits).bitwiseOR(functions.shiftrightunsigned(value, 64 - bits))
