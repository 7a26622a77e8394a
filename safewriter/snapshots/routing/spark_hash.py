"""The digest of integer keys in Spark SQL, so that Spark finds the shards of rows without a Python process.

It is `digests_of_integers` with Spark's operations, with or without ANSI mode: that mode refuses a product of more than
63 bits, so each product here has 48 bits at most. The task computes each row's shard again, with NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.snapshots.routing.hashing import FLIP, PRIME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

__all__ = ["with_shard"]

_HALF: Final = 0xFFFFFFFF
_WORD: Final = 0xFFFF
_STEP: Final = "__soal_digest_"


def with_shard(rows: DataFrame, key: str, shard: str, num_dbs: int) -> DataFrame:
    """Return the rows with a column `shard`, for an integer column `key`; 0 for a null, which its task refuses."""
    # Each step is a named column, which the next one uses several times: a single expression would explode. All steps
    # are SQL text in one call, since each call to Java and each analysis of a plan takes time.
    steps = list(_steps(f"CAST(`{key}` AS BIGINT)"))
    columns = [f"{step} AS {_STEP}{number}" for number, step in enumerate(steps)]
    digest = f"{_STEP}{len(steps) - 1}"
    # The digest is unsigned: take its upper 63 bits, then the lowest one.
    remainder = f"(shiftrightunsigned({digest}, 1) % {num_dbs} * 2 + ({digest} & 1)) % {num_dbs}"
    assigned = f"CAST(coalesce({remainder}, 0) AS INT) AS `{shard}`"
    return rows.selectExpr("*", *columns).selectExpr(*(f"`{name}`" for name in rows.columns), assigned)


def _steps(key: str) -> Iterator[str]:
    """Yield the steps of the digest; each is an expression of the previous one."""
    names = (f"{_STEP}{number}" for number in range(6))
    yield f"{_rotated(key, 32)} ^ {FLIP - 2**64 if FLIP >= 2**63 else FLIP}L"
    value = next(names)
    yield f"{value} ^ {_rotated(value, 49)} ^ {_rotated(value, 24)}"
    yield _product(next(names))
    value = next(names)
    yield f"{value} ^ (shiftrightunsigned({value}, 35) + 8)"
    yield _product(next(names))
    value = next(names)
    yield f"{value} ^ shiftrightunsigned({value}, 28)"


def _product(value: str) -> str:
    """Return `value * PRIME` modulo 2^64, as products of a half of `value` and a quarter of `PRIME`."""
    low, high = f"({value} & {_HALF}L)", f"shiftrightunsigned({value}, 32)"
    quarters = [f"{PRIME >> bits & _WORD}L" for bits in (0, 16, 32, 48)]
    first = f"({low} * {quarters[0]} + {_shifted_word(f'{low} * {quarters[1]}')})"
    second = " + ".join(
        (
            f"shiftrightunsigned({first}, 32)",
            f"shiftrightunsigned({low} * {quarters[1]}, 16)",
            f"({low} * {quarters[2]} & {_HALF}L)",
            _shifted_word(f"{low} * {quarters[3]}"),
            f"({high} * {quarters[0]} & {_HALF}L)",
            _shifted_word(f"{high} * {quarters[1]}"),
        )
    )
    return f"shiftleft({second}, 32) | ({first} & {_HALF}L)"


def _shifted_word(value: str) -> str:
    return f"shiftleft({value} & {_WORD}L, 16)"


def _rotated(value: str, bits: int) -> str:
    return f"(shiftleft({value}, {bits}) | shiftrightunsigned({value}, {64 - bits}))"
