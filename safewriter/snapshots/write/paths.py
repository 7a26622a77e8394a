"""Where the shards of a build lie."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Paths"]


@dataclass(frozen=True, slots=True)
class Paths:
    """Where the shards of a build lie. `build` is new for each build, so no two builds of one run meet."""

    s3_prefix: str
    shard_prefix: str
    run_id: str
    template: str
    build: str

    def shard_url(self, db_id: int, attempt: str) -> str:
        """Return the directory of an attempt at a shard."""
        database = self.template.format(db_id=db_id)
        root = f"{self.s3_prefix.rstrip('/')}/{self.shard_prefix}/run_id={self.run_id}"
        return f"{root}/{database}/attempt={attempt}"

    def attempt(self, number: int, token: str) -> str:
        """Return the name of a task's attempt: Spark's number of it, the build, and a token of its own."""
        return f"{number:02d}-{self.build}-{token}"
