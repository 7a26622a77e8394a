"""The URLs of a build's shards."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Paths"]


@dataclass(frozen=True, slots=True)
class Paths:
    """The URLs of a build's shards. `build` is new for each build, so the builds of a run never share a URL."""

    s3_prefix: str
    shard_prefix: str
    run_id: str
    template: str
    build: str

    def shard_url(self, db_id: int, attempt: str) -> str:
        """Return the URL of the folder of an attempt at a shard."""
        database = self.template.format(db_id=db_id)
        root = f"{self.s3_prefix.rstrip('/')}/{self.shard_prefix}/run_id={self.run_id}"
        return f"{root}/{database}/attempt={attempt}"

    def attempt(self, number: int, token: str) -> str:
        """Return the name of a task's attempt: its number, the build, and its own token."""
        return f"{number:02d}-{self.build}-{token}"
