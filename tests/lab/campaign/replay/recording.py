"""One guarded write, recorded without a fault: every mutating request, and the requests that it waited for.

A crash leaves some of these requests applied, and some on their way. An S3 PUT is atomic, so nothing else matters.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import uuid
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from safewriter.deadline import epoch_ms
from soal.testing.s3.rules import Match, Rule
from tests.lab.bench.catalog import file_of
from tests.lab.campaign.job import BEFORE, STATEMENTS, Order
from tests.lab.campaign.selection import is_selected
from tests.lab.experiment.ground import Ground
from tests.lab.experiment.plan import Format
from tests.lab.experiment.tables import LAKE, table_of
from tests.lab.processes import JobProcess

if TYPE_CHECKING:
    from pathlib import Path

    from mypy_boto3_s3 import S3Client

    from soal.testing.s3.exchange import Reply, Request

__all__ = ["SUBJECTS", "Recording", "Step", "Subject", "record", "subjects"]

_Point = Literal["write", "success"]
_POINTS: Final[dict[Format, tuple[_Point, ...]]] = {"delta": ("write", "success"), "iceberg": ("write",)}
"""An Iceberg block publishes in `success()`, so before that nothing needs an undo."""
_UNDOABLE: Final = ("append", "create")
"""The gate sends nothing else with `commit_point="success"`."""
_TASKS: Final = 4


class Subject(BaseModel):
    """A kind of guarded write, of up to four data files."""

    model_config = ConfigDict(frozen=True)

    table_format: Format
    statement: str
    commit_point: _Point = "write"

    @property
    def name(self) -> str:
        """The beginning of its crash states' names."""
        return f"{self.table_format}-{self.statement}-{self.commit_point}"


SUBJECTS: Final = tuple(
    Subject(table_format=table_format, statement=statement, commit_point=point)
    for table_format, points in _POINTS.items()
    for statement in STATEMENTS[table_format]
    for point in points
    if point == "write" or statement in _UNDOABLE
)


class Step(BaseModel):
    """A mutating request. `after`: a bit for each step that was answered before this one was sent.

    `condition`: S3's precondition. The one step with the operation `CatalogChange` moves the catalog's pointer to
    `key`, from the location in its condition.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    operation: str
    bucket: str
    key: str
    key_class: str
    condition: str | None
    body: bytes
    after: int = 0


class Recording(BaseModel):
    """A write. `base`: the table's objects before it, with their times. `root`: its folder in the lake's bucket.

    `catalog`: Iceberg's catalog file before the write; empty on Delta. `ended_ms`: when it was recorded. Times are
    epoch milliseconds.
    """

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    subject: Subject
    table: str
    root: str
    ended_ms: int
    base: dict[str, tuple[int, bytes]]
    catalog: bytes
    steps: tuple[Step, ...]


@dataclass(slots=True)
class _Tape:
    """A rule's action: records each request, and applies it."""

    client: S3Client
    catalog: Path | None
    seen: list[tuple[int, int, Step]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pointer: str | None = None

    def __post_init__(self) -> None:
        self._pointer = self._location()

    def __call__(self, request: Request) -> Reply:
        began = time.monotonic_ns()
        self.look(began)
        reply = request.apply()
        ended = time.monotonic_ns()
        if reply.status >= 300:
            return reply
        if request.operation not in ("PutObject", "DeleteObject"):
            raise NotImplementedError(f"{request.operation} {request.key} cannot be replayed yet")
        body = b""
        if request.operation == "PutObject":  # as S3 stores it: on the wire it is in chunks
            body = self.client.get_object(Bucket=request.bucket, Key=request.key)["Body"].read()
        step = Step(
            operation=request.operation,
            bucket=request.bucket,
            key=request.key,
            key_class=request.key_class,
            condition=request.condition,
            body=body,
        )
        with self._lock:
            self.seen.append((began, ended, step))
        return reply

    def look(self, now_ns: int) -> None:
        """Record a commit to the catalog, which is no S3 request, as one just before now."""
        location = self._location()
        with self._lock:
            if location != self._pointer and location is not None:
                step = Step(
                    operation="CatalogChange",
                    bucket="",
                    key=location,
                    key_class="catalog",
                    condition=self._pointer,
                    body=b"",
                )
                self.seen.append((now_ns - 1, now_ns - 1, step))
                self._pointer = location

    def _location(self) -> str | None:
        if self.catalog is None:
            return None
        with closing(sqlite3.connect(self.catalog)) as opened:
            return str(opened.execute("SELECT metadata_location FROM iceberg_tables").fetchone()[0])


def subjects(select: str = "") -> list[Subject]:
    """Return the subjects that `select` names."""
    return [one for one in SUBJECTS if is_selected(one.name, select)]


def record(subject: Subject, s3: str) -> Recording:
    """Carry out a write in a process of its own, on a backend. Raises `RuntimeError` if it fails."""
    with Ground(s3) as ground:
        place = ground.place(f"{subject.name}-{uuid.uuid4().hex[:8]}", str(ground.folder))
        table = table_of(subject.table_format, place)
        if before := BEFORE[subject.statement]:
            table.make(pa.table({"id": pa.array(before, pa.int64())}))
        client = ground.s3.observer()
        base = {key: _found(client, key) for key in ground.s3.keys(LAKE)}
        file = file_of(ground.folder) if subject.table_format == "iceberg" else None
        catalog = b"" if file is None else file.read_bytes()
        tape = _Tape(client, file)
        ground.s3.wire.add(Rule(Match(is_mutating=True), tape, times=None))
        order = Order(
            table=table.name,
            table_format=subject.table_format,
            statement=subject.statement,
            guarded=True,
            settings=dict(table.settings),
            tasks=_TASKS,
            commit_point=subject.commit_point,
        )
        ended = JobProcess("tests.lab.campaign.job", order, ground.variables(place.prefix), ground.folder).wait()
        if ended.code != 0:
            raise RuntimeError(f"{subject.name} could not be recorded:\n{ended.errors[-2000:]}")
        tape.look(time.monotonic_ns())
        return Recording(
            subject=subject,
            table=table.name,
            root=place.prefix if subject.table_format == "delta" else "",
            ended_ms=epoch_ms(),
            base=base,
            catalog=catalog,
            steps=_ordered(tape.seen),
        )


def _found(client: S3Client, key: str) -> tuple[int, bytes]:
    found = client.get_object(Bucket=LAKE, Key=key)
    return int(found["LastModified"].timestamp() * 1000), found["Body"].read()


def _ordered(seen: list[tuple[int, int, Step]]) -> tuple[Step, ...]:
    """Return the steps, each with the steps that ended before it began.

    The data files of a statement never wait for each other, whatever their order: no task knows of another one.
    """
    rows = sorted(seen, key=lambda row: row[:2])
    steps = []
    for began, _, step in rows:
        after = 0
        for number, (_, ended, other) in enumerate(rows):
            if ended < began and not step.key_class == other.key_class == "data":
                after |= 1 << number
        steps.append(step.model_copy(update={"after": after}))
    return tuple(steps)
