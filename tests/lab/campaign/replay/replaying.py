"""Build a crash state of a recorded write in memory, settle it with the real code, and read the table.

No JVM, no server: a state takes milliseconds. deltalake and pyiceberg read the tables.
"""

from __future__ import annotations

import io
import re
import sqlite3
import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from unittest.mock import patch

import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from safewriter.objects.location import Location
from safewriter.objects.store import PreconditionFailed
from safewriter.record.checkpoints import Checkpoints
from safewriter.settle.recovery import Cause, Evidence, Recovery
from safewriter.settle.sweeper import Sweeper
from safewriter.tables.iceberg.catalogs import to_pyiceberg
from scripts.tables.delta import named_in
from soal.orphans.iceberg import catalog_of, referred
from tests.lab.bench.catalog import CATALOG, file_of, of_file
from tests.lab.campaign.job import AFTER, BEFORE
from tests.lab.campaign.judging import Seen, violations_of
from tests.lab.campaign.replay.states import bits, states
from tests.lab.experiment.ground import DEADLINE_MS
from tests.lab.experiment.tables import LAKE
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.objects.store import ObjectStore, Upload
    from safewriter.record.document import Checkpoint
    from tests.lab.campaign.record import Violation
    from tests.lab.campaign.replay.recording import Recording, Step

__all__ = ["CrashState", "Replayed", "Replayer"]

_SETTLERS: Final = ("supervisor", "sweeper")
_UNREADABLE: Final = (-1,)
"""The rows of a table with missing files: equal neither to the rows before a write nor to those after it."""
_STATE: Final = re.compile(r"(.+)-([0-9a-f]+)-([0-9a-f]+)-(supervisor|sweeper)-(end|land|die)(\d*)")


@dataclass(frozen=True, slots=True)
class CrashState:
    """`applied` and `late`: steps of the recording `subject`, as bits. `settler`: runs first; the sweeper runs last.

    The `event` happens at the settler's `nth` change: either the late requests `land`, or the settler is to `die`
    before the change. With the event `end` the late requests land after the settler.
    """

    subject: str
    applied: int
    late: int
    settler: str
    event: str = "end"
    nth: int = 0

    @property
    def name(self) -> str:
        """Stable name, used to replay."""
        return f"{self.subject}-{self.applied:x}-{self.late:x}-{self.settler}-{self.event}{self.nth or ''}"

    @property
    def is_late_behind_grace(self) -> bool:
        """Whether a request arrives after the sweeper."""
        return self.late > 0 and (self.settler == "sweeper" or self.event == "die")

    @classmethod
    def parse(cls, name: str) -> CrashState:
        """Return the state of a name. Raises `ValueError`."""
        found = _STATE.fullmatch(name)
        if found is None:
            raise ValueError(f"{name!r} is no crash state; one is delta-append-write-1f-20-sweeper-land2")
        subject, applied, late, settler, event, nth = found.groups()
        return cls(subject, int(applied, 16), int(late, 16), settler, event, int(nth or 0))


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a state. `changes`: the requests by which its first settler changed something."""

    state: CrashState
    verdict: str
    landed: bool | None
    changes: int
    violations: tuple[Violation, ...]


class _Died(BaseException):
    """The settler has died."""


class _Store(MemoryObjectStore):
    """Reports each change before it is made."""

    def __init__(self, now: Callable[[], datetime], bucket: str, changing: Callable[[], None]) -> None:
        super().__init__(now, bucket)
        self._changing = changing

    def create(self, key: str, body: bytes, *, tag: str = "") -> str:
        self._changing()
        return super().create(key, body, tag=tag)

    def replace(self, key: str, body: bytes, *, etag: str, tag: str = "") -> str:
        self._changing()
        return super().replace(key, body, etag=etag, tag=tag)

    def put(self, key: str, body: bytes) -> str:
        self._changing()
        return super().put(key, body)

    def delete(self, key: str) -> None:
        self._changing()
        super().delete(key)

    def abort(self, upload: Upload) -> None:
        self._changing()
        super().abort(upload)


class Replayer:
    """A context manager for the states of one recording; one per process at a time."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._catalog: dict[str, str] = {}
        self._ids_of: dict[int, tuple[int, ...]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(patch("safewriter.objects.s3.table_store", self._table_store))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def families(self) -> Iterator[CrashState]:
        """Yield each state that a crash can leave, for each settler, without an event."""
        for applied, late in states([step.after for step in self._recording.steps]):
            for settler in _SETTLERS:
                yield CrashState(self._recording.subject.name, applied, late, settler)

    def family(self, first: CrashState) -> Iterator[Replayed]:
        """Settle a state, then the same state with each event before each of its settler's changes."""
        plain = self.replay(first)
        yield plain
        for nth in range(1, plain.changes + 1):
            yield self.replay(replace(first, event="die", nth=nth))
            if first.late:
                yield self.replay(replace(first, event="land", nth=nth))

    def replay(self, state: CrashState) -> Replayed:
        """Settle one state, and judge it."""
        # A new folder: SQLite does not notice that a file was replaced under an open connection.
        with tempfile.TemporaryDirectory(prefix="soal-replay-") as folder:
            self._folder = Path(folder)
            return self._replay(state)

    def _replay(self, state: CrashState) -> Replayed:
        self._begin(state)
        self._first(state)
        changes = self._changes
        settled = self._verdict(), self._found()
        self._land()
        self._sweep()
        verdict, found = self._verdict(), self._found()
        after = AFTER[self._recording.subject.statement]
        seen = Seen(
            guarded=True,
            acknowledged=self._is_acknowledged(state.applied),
            verdict=verdict,
            before=BEFORE[self._recording.subject.statement],
            after=after,
            found=found,
            found_at_end=after,  # no retry
            retry_succeeded=True,
            changed=settled[0] in ("committed", "rolled_back") and settled != (verdict, found),
            # By the rules, nothing is late after the grace: only the verdict must hold.
            orphans=0 if state.is_late_behind_grace else len(self._orphans()),
        )
        return Replayed(state, verdict, seen.landed, changes, tuple(violations_of(seen)))

    # -- the state ---------------------------------------------------------------------------------------------------

    def _begin(self, state: CrashState) -> None:
        self._at: tuple[int, Callable[[], None]] | None = None
        self._changes = 0
        self._lake = _Store(self._now, LAKE, self._changing)
        self._bucket = _Store(self._now, "checkpoints", self._changing)
        for key, (modified_ms, body) in self._recording.base.items():
            self._now_ms = modified_ms
            self._lake.put(self._key(key), body)
        self._now_ms = self._recording.ended_ms
        if self._recording.catalog:
            self._catalog = of_file(self._folder, f"s3://{LAKE}")
            file_of(self._folder).write_bytes(self._recording.catalog)
        for number in bits(state.applied):
            self._apply(self._recording.steps[number])
        self._late = [self._recording.steps[number] for number in bits(state.late)]
        self._changes = 0

    def _apply(self, step: Step) -> None:
        if step.operation == "CatalogChange":
            with closing(sqlite3.connect(file_of(self._folder))) as opened, opened:
                swap = "UPDATE iceberg_tables SET metadata_location = ? WHERE metadata_location = ?"
                opened.execute(swap, (step.key, step.condition))
            return
        is_lake = step.bucket == LAKE
        store, key = (self._lake, self._key(step.key)) if is_lake else (self._bucket, step.key)
        try:
            if step.operation == "DeleteObject":
                store.delete(key)
            elif step.condition is None:
                store.put(key, step.body)
            elif step.condition == "If-None-Match: *":
                store.create(key, step.body)
            else:
                store.replace(key, step.body, etag=step.condition.removeprefix("If-Match: "))
        except PreconditionFailed:
            pass  # S3 refuses it, and the sender is dead

    def _land(self) -> None:
        late, self._late = self._late, []
        at, self._at = self._at, None
        for step in late:
            self._apply(step)
        self._at = at

    def _changing(self) -> None:
        self._changes += 1
        if self._at is not None and self._changes == self._at[0]:
            act, self._at = self._at[1], None
            act()

    # -- settlers ------------------------------------------------------------------------------------------------------

    def _first(self, state: CrashState) -> None:
        self._at = {"end": None, "die": (state.nth, _die), "land": (state.nth, self._land)}[state.event]
        try:
            if state.settler == "sweeper":
                self._sweep()
            elif (document := self._document()) is not None:
                evidence = Evidence(document.epoch)
                self._recovery().settle(document.write_key, Cause.KILLED, evidence)
        except _Died:
            pass
        self._at = None
        if state.event == "die":
            self._sweep()

    def _sweep(self) -> None:
        """Run the sweeper after all grace periods."""
        self._now_ms += 2 * DEADLINE_MS
        Sweeper(self._checkpoints(), self._recovery(), self._clock, may_go_on=lambda: True, threads=1).sweep()

    def _recovery(self) -> Recovery:
        return Recovery(self._checkpoints(), self._table_store, clock=self._clock, secrets=self._catalog)

    def _checkpoints(self) -> Checkpoints:
        return Checkpoints(self._bucket)

    def _clock(self) -> int:
        return self._now_ms

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._now_ms / 1000, UTC)

    def _table_store(self, uri: str) -> ObjectStore:
        where = Location.parse(uri)
        key, root = where.key.strip("/"), self._recording.root
        if (where.bucket, key) == (LAKE, root):
            return self._lake
        if where.bucket == LAKE and root.startswith(f"{key}/" if key else ""):
            return MemoryObjectStore(self._now, LAKE)  # a folder around the table has no log of its own
        raise ValueError(f"{uri} is not the store of {self._recording.table}")

    def _key(self, key: str) -> str:
        return key.removeprefix(f"{self._recording.root}/") if self._recording.root else key

    # -- results -------------------------------------------------------------------------------------------------------

    def _document(self) -> Checkpoint | None:
        for listed in self._bucket.list("checkpoints/"):
            stored = self._checkpoints().read(listed.key.removeprefix("checkpoints/").removesuffix(".json"))
            if stored is not None:
                return stored.document
        return None

    def _verdict(self) -> str:
        document = self._document()
        return "rolled_back" if document is None else str(document.status)  # without a document, nothing was claimed

    def _is_acknowledged(self, applied: int) -> bool:
        """Return whether the process may have reported success: its verdict, the document's last state, was stored."""
        last = max(number for number, step in enumerate(self._recording.steps) if step.key_class == "checkpoint")
        return bool(applied >> last & 1)

    def _found(self) -> tuple[int, ...]:
        """Return the ids, sorted, or `_UNREADABLE`."""
        try:
            return self._found_in_iceberg() if self._catalog else self._found_in_delta()
        except FileNotFoundError:
            return _UNREADABLE

    def _found_in_delta(self) -> tuple[int, ...]:
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            for listed in [*self._lake.list("_delta_log/")]:
                path = Path(folder, listed.key)
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(self._body(listed.key))
            try:
                files = [uri.rpartition("/")[2] for uri in DeltaTable(folder).file_uris()]
            except TableNotFoundError:
                return ()
        return tuple(sorted(id_ for file in files for id_ in _ids_in(self._body(file))))

    def _found_in_iceberg(self) -> tuple[int, ...]:
        table = self._loaded()
        if missing := {Location.parse(one).key for one in referred(table)} - {one.key for one in self._lake.list("")}:
            raise FileNotFoundError(f"{self._recording.table} names files that are not there: {sorted(missing)}")
        snapshot = table.metadata.current_snapshot_id
        if snapshot not in self._ids_of:
            self._ids_of[snapshot] = tuple(sorted(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()))
        return self._ids_of[snapshot]

    def _loaded(self) -> Any:
        own = {**to_pyiceberg(CATALOG, self._catalog), "init_catalog_tables": "false"}
        return catalog_of(CATALOG, own).load_table("db.t")

    def _orphans(self) -> list[str]:
        """Return the data files that no version references."""
        keys = [one.key for one in self._lake.list("") if one.key.endswith(".parquet") and "_delta_log/" not in one.key]
        if self._catalog:
            named = {Location.parse(one).key for one in referred(self._loaded())}
        else:
            log = [one.key for one in self._lake.list("_delta_log/") if one.key.endswith(".json")]
            named = {path for key in log for path in named_in(self._body(key))}
        return [key for key in keys if key not in named]

    def _body(self, key: str) -> bytes:
        found = self._lake.get(key)
        if found is None:
            raise FileNotFoundError(f"{key} is named by {self._recording.table}, and is not there")
        return found.body


def _die() -> None:
    raise _Died


@cache
def _ids_in(body: bytes) -> tuple[int, ...]:
    return tuple(pq.read_table(io.BytesIO(body), columns=["id"])["id"].to_pylist())
