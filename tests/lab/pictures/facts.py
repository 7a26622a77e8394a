"""The facts of one collection, from which the pictures are drawn; kept as JSON beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pydantic import TypeAdapter

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "MOMENTS",
    "Facts",
    "KilledJob",
    "Moment",
    "Place",
    "SeenTable",
    "TracedRequest",
    "TracedWrite",
    "read_facts",
    "write_facts",
]

Place = Literal["checkpoints", "table"]
Moment = Literal["marked", "written", "landed", "settled"]

MOMENTS: Final[tuple[Moment, ...]] = ("marked", "written", "landed", "settled")
"""The moments of a kill, in the order of a write: between marker and claim, between data files and commit, between the
commit and its answer, between the verdict and its answer.
"""


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """One S3 request. `at_ms` counts from the first request of the write."""

    at_ms: int
    operation: str
    place: Place
    key_class: str
    key: str
    condition: str | None
    status: int | None
    body_bytes: int


@dataclass(frozen=True, slots=True)
class TracedWrite:
    """One guarded append to an existing table: its requests to the two buckets, as they began."""

    requests: tuple[TracedRequest, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class SeenTable:
    """A table as deltalake reads it, and the traces of its writes in the checkpoint bucket.

    `orphans` counts data files that no version names, `markers` the announced attempts; `status` and `epoch` are those
    of the batch's checkpoint document, None if there is none.
    """

    rows: int
    files: int
    orphans: int
    markers: int
    status: str | None
    epoch: int | None


@dataclass(frozen=True, slots=True)
class KilledJob:
    """A job killed at one moment, and its retry under the same clientToken: the table before, between and after."""

    is_guarded: bool
    moment: Moment
    before: SeenTable
    killed: SeenTable
    retried: SeenTable
    retry: str
    """The state in the retry's answer."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of one collection. `commit` is the last one that changed what ran; `batch_rows` is the size of
    the file that each job appends.
    """

    commit: str
    versions: dict[str, str]
    batch_rows: int
    write: TracedWrite
    kills: tuple[KilledJob, ...]

    def kill(self, moment: Moment, *, is_guarded: bool) -> KilledJob:
        """Return the one kill at that moment."""
        (found,) = (kill for kill in self.kills if (kill.is_guarded, kill.moment) == (is_guarded, moment))
        return found

    @property
    def origin(self) -> str:
        """The origin of the facts, for a picture's note."""
        return (
            f"Drawn from real runs by python -m tests.lab.pictures: commit {self.commit[:12]}, Spark"
            f" {self.versions['pyspark']}, Delta {self.versions['delta-spark']}, moto {self.versions['moto']} as S3,"
            f" deltalake {self.versions['deltalake']} as reader."
        )


_FACTS: Final = TypeAdapter(Facts)


def read_facts(path: Path) -> Facts:
    """Read what `write_facts` has written. Raises ValueError for any other file."""
    return _FACTS.validate_json(path.read_bytes())


def write_facts(facts: Facts, path: Path) -> None:
    """Write the facts as JSON."""
    path.write_bytes(_FACTS.dump_json(facts, indent=2) + b"\n")
