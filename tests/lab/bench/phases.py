"""The phases of one cold run, from facts that its parts record anyway: a phase ends where the next one begins.

The emulator writes a log, the kernel records each process's start, Java its classes, S3 its requests. A phase without
its first event is left out, and the one before is longer.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["PHASES", "Facts", "Loaded", "Phase", "Request", "Who", "classes_of", "phases_of"]

_LINE: Final = re.compile(r"\[(\d+)ms\] (\S+) source: (.+)")
_ARCHIVED: Final = "shared objects file"

Who = str
"""`emulator`, `handler`, `java`, `python`: the part that the phase waits for."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to S3. Times are milliseconds since the event was sent."""

    operation: str
    bucket: str
    key_class: str
    began_ms: float
    ended_ms: float


@dataclass(frozen=True, slots=True)
class Loaded:
    """A class that Java has loaded, in milliseconds since the event was sent.

    `origin`: `archive`, `jar`, `lambda` (made for a lambda expression at run time), or `made` (any other that was made
    at run time).
    """

    name: str
    origin: str
    at_ms: float


@dataclass(frozen=True, slots=True)
class Facts:
    """Times are milliseconds since the event was sent. `starts`: of each process, to 10 ms."""

    starts: Mapping[Who, float]
    classes: Sequence[Loaded]
    requests: Sequence[Request]
    answered_ms: float


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the run, with the `requests` to S3 that began and the `classes` (by origin) that were loaded in it."""

    name: str
    who: Who
    began_ms: float
    ended_ms: float
    requests: int
    classes: Mapping[str, int]


def classes_of(lines: Iterable[str], origin_ms: float) -> tuple[Loaded, ...]:
    """Read Java's log of classes (`-Xlog:class+load=info:…:timemillis`). `origin_ms`: the event, since the epoch."""
    found = (_LINE.match(line) for line in lines)
    return tuple(
        Loaded(match[2], _origin(match[2], match[3]), float(match[1]) - origin_ms)
        for match in found
        if match is not None
    )


def _origin(name: str, source: str) -> str:
    if source.startswith(_ARCHIVED):
        return "archive"
    if "$$Lambda" in name:
        return "lambda"
    return "jar" if source.startswith(("file:", "jar:", "jrt:")) and "GeneratedClass" not in name else "made"


def _class(name: str) -> Callable[[Facts], float | None]:
    return lambda facts: next((one.at_ms for one in facts.classes if one.name == name), None)


def _started(who: Who) -> Callable[[Facts], float | None]:
    return lambda facts: facts.starts.get(who)


def _request(
    operation: str, key_class: str, *, nth: int = 0, ended: bool = False, bucket: str = ""
) -> Callable[[Facts], float | None]:
    """Return a function that finds the time of the `nth` such request; -1 is the last. An empty bucket matches any."""

    def find(facts: Facts) -> float | None:
        found = [
            one.ended_ms if ended else one.began_ms
            for one in facts.requests
            if re.fullmatch(operation, one.operation) and one.key_class == key_class and one.bucket.startswith(bucket)
        ]
        return found[nth] if -len(found) <= nth < len(found) else None

    return find


PHASES: Final[tuple[tuple[str, Who, Callable[[Facts], float | None]], ...]] = (
    ("the emulator starts the handler", "emulator", lambda _: 0.0),
    ("the handler imports, and starts Java", "handler", _started("handler")),
    ("Java starts", "java", _started("java")),
    ("Java has started, and has no job yet", "handler", _class("io.soal.host.Host")),
    ("Spark's submission", "java", _class("org.apache.spark.deploy.SparkSubmit")),
    ("the job's Python is forked, and waits for its code", "python", _class("org.apache.spark.api.python.Py4JServer")),
    ("Spark's context", "java", _class("org.apache.spark.SparkContext")),
    ("the session, and the plan of the reading", "java", _class("org.apache.spark.sql.classic.SparkSession")),
    ("the schema from the file", "java", _request("HeadObject", "other", bucket="soal-data")),
    ("SafeWriter claims the write", "python", _request("PutObject", "marker")),
    ("Delta plans the write", "java", _request("PutObject", "checkpoint", ended=True)),
    ("the task reads, sorts, encodes", "java", _request("HeadObject", "data")),
    ("the data, and Delta's commit", "java", _request("PutObject", "data")),
    ("Delta's work after its commit", "java", _request("PutObject", "delta_log/commit")),
    ("the verdict", "python", _request("PutObject", "delta_log/checksum", ended=True)),
    ("Python ends, and Java takes the job away", "java", _request("PutObject", "checkpoint", nth=-1, ended=True)),
    ("the handler records the result", "handler", _request("PutObject", "run", nth=-1)),
)
"""Name, the part that it waits for, and its start."""


def phases_of(facts: Facts) -> tuple[Phase, ...]:
    """Return the phases of a run, without gaps. A boundary earlier than the previous one is moved to that."""
    begins: list[tuple[str, Who, float]] = []
    at_ms = 0.0
    for name, who, boundary in PHASES:
        if (found := boundary(facts)) is not None:
            at_ms = max(at_ms, found)
            begins.append((name, who, at_ms))
    ends = [*(began_ms for _, _, began_ms in begins[1:]), facts.answered_ms]
    return tuple(
        Phase(
            name,
            who,
            began_ms,
            ended_ms,
            sum(began_ms <= one.began_ms < ended_ms for one in facts.requests),
            _count(one.origin for one in facts.classes if began_ms <= one.at_ms < ended_ms),
        )
        for (name, who, began_ms), ended_ms in zip(begins, ends, strict=True)
    )


def _count(origins: Iterable[str]) -> dict[str, int]:
    return {origin: len(tuple(group)) for origin, group in itertools.groupby(sorted(origins))}
