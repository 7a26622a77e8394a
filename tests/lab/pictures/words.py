"""Words that both pictures use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.lab.pictures.facts import Facts

__all__ = ["count", "origin", "rows"]

_COMMIT_CHARACTERS: Final = 12


def rows(number: int) -> str:
    """Return e.g. `22,248 rows`."""
    return f"{number:,} rows"


def count(number: int, name: str) -> str:
    """Return e.g. `1 data file`, `no data files`."""
    return f"{number or 'no'} {name}{'' if number == 1 else 's'}"


def origin(facts: Facts) -> str:
    """Say where a picture comes from."""
    versions = facts.versions
    return (
        f"Drawn from real runs by python -m tests.lab.pictures: commit {facts.commit[:_COMMIT_CHARACTERS]}, Spark"
        f" {versions['pyspark']}, Delta {versions['delta-spark']}, moto {versions['moto']} as S3,"
        f" deltalake {versions['deltalake']} as reader."
    )
