"""The keys `job.coordinator.…`: the article's three, and those that this code adds.

Source of the first three: https://engineering.salesforce.com/global-synchronousness-and-ordering-in-delta-lake
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from safewriter.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

__all__ = ["PREFIX", "Configuration", "Edge", "FirstRun", "Mode", "OnBlocked"]

PREFIX: Final = "job.coordinator."
_DAY_S: Final = 86_400
_ENDLESS: Final = float("inf")
_LAG_MAX: Final = 1_000_000  # a job's turns add up in the record, whose numbers fit into 64 bits
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Mode(StrEnum):
    """In which order the jobs of a lock run."""

    COMPLETED = "completed"
    """A job may complete as many turns as its predecessor has completed."""
    STRICT = "strict"
    """The article's ring: a job runs when its predecessor had the last turn."""


class Edge(StrEnum):
    """How much a job needs its predecessor, in mode `completed`."""

    HARD = "hard"
    SOFT = "soft"
    """The predecessor goes first if it also waits for the lock."""
    LAGGED = "lagged"
    """The job may complete `lag` turns for each completed turn of its predecessor."""


class FirstRun(StrEnum):
    """Whether a job's first turn needs its predecessor."""

    WAIT = "wait"
    RUN = "run"


class OnBlocked(StrEnum):
    """What a job does if it may not run yet."""

    WAIT = "wait"
    RAISE = "raise"
    SKIP = "skip"


_KEYS: Final = {
    "lock": "lock.name",
    "job": "name",
    "predecessor": "predecessor",
    "mode": "mode",
    "edge": "predecessor.edge",
    "lag": "predecessor.lag",
    "first_run": "first.run",
    "on_blocked": "on.blocked",
    "max_wait_s": "max.wait.seconds",
    "lease_s": "lease.seconds",
    "poll_s": "poll.seconds",
    "backend": "backend",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One job's settings at one lock. Raises `SettingError`, which names the key, for an invalid value.

    Parameters
    ----------
    lock
        `job.coordinator.lock.name`: the shared resource; jobs that write one table name the same lock.
    job
        `job.coordinator.name`.
    predecessor
        `job.coordinator.predecessor`; None: the job may run whenever the lock is free.
    mode, edge, lag, first_run
        The order, see `docs/guides/coordination.md`. `lag` counts turns.
    on_blocked, max_wait_s
        What to do while the lock or the order blocks the job; it waits at most `max_wait_s` seconds.
    lease_s
        A holder that has not renewed for this many seconds loses the lock.
    poll_s
        The pause between two polls of a waiting job, in seconds.
    backend
        `s3://bucket/prefix`, `dynamodb://table`, `zookeeper://host:port/path`, `memory://name`; empty: the checkpoint
        bucket.
    """

    lock: str
    job: str
    predecessor: str | None = None
    mode: Mode = Mode.COMPLETED
    edge: Edge = Edge.HARD
    lag: int = 1
    first_run: FirstRun = FirstRun.WAIT
    on_blocked: OnBlocked = OnBlocked.WAIT
    max_wait_s: float = 600.0
    lease_s: float = 30.0
    poll_s: float = 0.5
    backend: str = ""

    def __post_init__(self) -> None:
        for name in ("lock", "job", "predecessor"):
            value = getattr(self, name)
            if value is not None and not _NAME.fullmatch(value):
                raise _problem(name, f"{value!r} is not a name: letters, digits, '.', '_' and '-', 100 at most")
        if self.predecessor == self.job:
            raise _problem("predecessor", f"{self.job!r} is the job itself; name the job that goes before it")
        if self.predecessor is None and (self.edge is not Edge.HARD or self.first_run is not FirstRun.WAIT):
            raise _problem("predecessor", "is not set, and another key speaks of it; set it, or remove that key")
        if self.mode is Mode.STRICT and self.predecessor is None:
            raise _problem("predecessor", "is not set; in a strict ring each job names the one before it")
        if self.mode is Mode.STRICT and self.edge is not Edge.HARD:
            raise _problem(
                "edge", f"{self.edge.value!r} is for mode 'completed'; the strict ring knows hard edges only"
            )
        for name, least, most in (
            ("lag", 1, _LAG_MAX),
            ("max_wait_s", 0, _ENDLESS),
            ("lease_s", 1, _DAY_S),  # bounds how long a dead job keeps its lock, or its place in the queue
            ("poll_s", 0.001, _DAY_S),
        ):
            if not least <= getattr(self, name) <= most:
                raise _problem(name, f"{getattr(self, name)!r} is not between {least} and {most}")
        if self.edge is not Edge.LAGGED and self.lag != 1:
            raise _problem("lag", f"is for job.coordinator.{_KEYS['edge']}=lagged only")

    @property
    def defers(self) -> bool:
        """Whether a predecessor that also waits goes first."""
        return self.mode is Mode.COMPLETED and self.edge is Edge.SOFT

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, str]) -> Configuration:
        """Read the keys `job.coordinator.…` of a mapping; ignore others. Raises `SettingError`, which names the key."""
        texts = {key[len(PREFIX) :]: value for key, value in mapping.items() if key.startswith(PREFIX)}
        unknown = sorted(texts.keys() - set(_KEYS.values()))
        if unknown:
            raise SettingError(PREFIX + unknown[0], f"is not known; known are {', '.join(sorted(_KEYS.values()))}")
        values: dict[str, Any] = {}
        for field in fields(cls):
            key = _KEYS[field.name]
            if key in texts:
                values[field.name] = _value(field.name, str(field.type), texts[key])
        for name in ("lock", "job"):
            if name not in values:
                raise _problem(name, "is missing")
        return cls(**values)

    @classmethod
    def from_spark(cls, spark: SparkSession) -> Configuration:
        """Read the keys from a session's settings, with or without the prefix `spark.`; a key without it wins."""
        settings = spark.conf.getAll
        prefixed = {key.removeprefix("spark."): value for key, value in settings.items() if key.startswith("spark.")}
        return cls.from_mapping({**prefixed, **settings})


def _value(name: str, kind: str, text: str) -> object:
    enums: dict[str, type[StrEnum]] = {"Mode": Mode, "Edge": Edge, "FirstRun": FirstRun, "OnBlocked": OnBlocked}
    if kind in enums:
        try:
            return enums[kind](text)
        except ValueError:
            known = ", ".join(member.value for member in enums[kind])
            raise _problem(name, f"{text!r} is not one of {known}") from None
    if kind in ("int", "float"):
        try:
            return int(text) if kind == "int" else float(text)
        except ValueError:
            raise _problem(name, f"{text!r} is not a number") from None
    return text


def _problem(name: str, problem: str) -> SettingError:
    return SettingError(PREFIX + _KEYS[name], problem)
