"""The record of a run: its attempts, and the state of the last one. It also shows a run that dies before its first
write.

The record is one object per run key, `runs/<digest>.json`, changed by compare-and-swap. While an attempt runs, its
handler renews a small lease beside the record, so that a second delivery of the run can see whether it is alive.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from handler.runs.record import RUNNING, SUCCESS, CancelRequest, RunRecord
from handler.runs.same_job import check_same_job, is_same_code, of_completed_turn
from safewriter.errors import TryAgainError
from safewriter.objects import ListedObject, ObjectStore, PreconditionFailed, StoredObject, StoreError
from safewriter.objects.store import TooLarge
from safewriter.record.liveness import LEASE_MS, Owner, Sighting, is_over, watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from handler.request.job import Job
    from safewriter.deadline import Clock
    from safewriter.schedule import Schedule

__all__ = [
    "RESULTS",
    "AttemptRunningError",
    "OpenRun",
    "Runs",
    "StoredRun",
    "UnreadableRecordError",
    "digest_of",
    "result_key",
]

RESULTS: Final = "results/"
"""Where the results of attempts lie in the checkpoint bucket."""
_ROUNDS_MAX: Final = 100
_REASON_MAX: Final = 4000
_RECORD_MAX_BYTES: Final = 4 << 20
_SMALL_MAX_BYTES: Final = 64 << 10
"""The most of a lease or a request to cancel that is read."""


class AttemptRunningError(TryAgainError):
    """Another attempt of the same run is alive; its job was not started. The same invocation may be tried later."""


class UnreadableRecordError(StoreError):
    """A record is damaged or of another version; it stays unchanged."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A record as read, and the attempt's signs of life."""

    record: RunRecord
    sighting: Sighting


@dataclass(frozen=True, slots=True)
class OpenRun:
    """An attempt that has begun, and the version of its record."""

    record: RunRecord
    etag: str
    before: RunRecord | None = None
    """The record of the previous attempt."""

    @property
    def has_other_code(self) -> bool:
        """Whether the script or a Python file differs from the previous attempt's."""
        return self.before is not None and self.before.code not in (None, self.record.code)


@dataclass(frozen=True, slots=True)
class Runs:
    """The records of runs in the checkpoint bucket."""

    store: ObjectStore
    clock: Clock
    sleep: Callable[[float], None] = time.sleep

    def begin(
        self,
        job: Job,
        *,
        run_id: str,
        request_id: str,
        schedule: Schedule,
        code: str | None = None,
        execution: str | None = None,
        repeats: bool = False,
    ) -> OpenRun:
        """Record that an attempt begins. `code`: the hash of its script and Python files; None if they could not be
        fetched, so that it cannot write. `repeats`: the run has already completed its turn on a lock.

        Raises `InputError` if the run key belongs to another job, `AttemptRunningError` if another attempt of the run
        is alive, `StoreError` if S3 does not answer.
        """
        first = RunRecord(
            run_key=job.run_key,
            fingerprint=job.fingerprint,
            name=job.name,
            entry_point=str(job.entry_point),
            attempt=1,
            run_id=run_id,
            previous_run_id=None,
            request_id=request_id,
            state=RUNNING,
            started_ms=self.clock(),
            deadline_ms=schedule.deadline.at_ms,
            result_uri=self.store.uri(result_key(run_id)),
            execution=execution,
            code=code,
            settings=job.settings,
            event=job.event,
            turn=None if job.coordination is None else (job.coordination.lock, job.coordination.job),
            may_hold_writes=False,
        )
        key = _record_key(job.run_key)
        if repeats:
            return self._next_attempt(key, first, job, schedule, repeats=True)
        try:
            return OpenRun(first, self.store.create(key, _body(first)))
        except PreconditionFailed:
            return self._next_attempt(key, first, job, schedule)

    def _next_attempt(
        self, key: str, first: RunRecord, job: Job, schedule: Schedule, *, repeats: bool = False
    ) -> OpenRun:
        for _ in range(_ROUNDS_MAX):
            stored = self._object(key)
            if stored is None and repeats:
                raise of_completed_turn(job, "its record is gone, so that nothing tells which writes it has made")
            if stored is None:
                raise StoreError(f"{self.store.uri(key)} was there, and is gone")
            before = _parse(stored, self.store.uri(key))
            check_same_job(before, first, job, repeats=repeats)
            if before.state == RUNNING:
                self._wait_for_death(before, stored, schedule)
            may_hold_writes = before.may_hold_writes or before.state == RUNNING
            record = first.model_copy(
                update={
                    "attempt": before.attempt + 1,
                    "previous_run_id": before.run_id,
                    "started_ms": self.clock(),
                    "code": first.code or before.code,
                    "turn": first.turn or before.turn,
                    "turn_completed": repeats or before.turn_completed or _has_done_its_work(before),
                    "may_hold_writes": may_hold_writes,
                    "of_several_scripts": before.of_several_scripts
                    or (may_hold_writes and not is_same_code(before, first)),
                }
            )
            try:
                return OpenRun(record, self.store.replace(key, _body(record), etag=stored.etag), before)
            except PreconditionFailed:
                continue
        raise StoreError(f"{self.store.uri(key)} changes too often to be written")

    def _wait_for_death(self, before: RunRecord, stored: StoredObject, schedule: Schedule) -> None:
        """Return once the attempt is dead or its record has changed; raise as soon as it gives a sign of life.

        Wait until the schedule's `begin_by` at most.
        """
        until_ms = min(self.clock() + 2 * LEASE_MS, schedule.begin_by_ms)

        def look() -> Sighting | None:
            latest = self._object(_record_key(before.run_key))
            return None if latest is None else self._sighting(before, latest)

        first = self._sighting(before, stored)
        if watch(first, look, may_wait=lambda: self.clock() < until_ms, sleep=self.sleep) is Owner.ALIVE:
            raise AttemptRunningError(
                f"attempt {before.attempt} of run {before.run_key!r} ({before.run_id}) is still running; try again"
                " when it has ended"
            )

    def _sighting(self, record: RunRecord, stored: StoredObject) -> Sighting:
        last_sign = stored.last_modified
        if record.state == RUNNING and not is_over(record.deadline_ms, stored.server_date):
            lease = self.store.get(_lease_key(record), max_bytes=_SMALL_MAX_BYTES)
            last_sign = last_sign if lease is None else max(last_sign, lease.last_modified)
        return Sighting(stored.etag, last_sign, stored.server_date, record.deadline_ms)

    def renew_lease(self, run: OpenRun) -> None:
        """Renew the attempt's lease."""
        self.store.put(_lease_key(run.record), run.record.run_id.encode())

    # -- for operators and other processes ---------------------------------------------------------------------------

    def read(self, run_key: str) -> StoredRun | None:
        """Return the record of a run; None if there is none, `StoreError` if it cannot be read."""
        return self._read(_record_key(run_key))

    def unfinished(self, run_key: str) -> str | None:
        """Return why a run is not over: an attempt of it has begun, and the last one has not succeeded. None: no
        attempt has begun, or the last one has succeeded. Raises `StoreError` if the record cannot be read.
        """
        stored = self._object(_record_key(run_key))
        record = None if stored is None else _parse(stored, self.store.uri(_record_key(run_key)))
        if record is None or record.state == SUCCESS:
            return None
        return f"its attempt {record.attempt} ({record.run_id}) is {record.state}"

    def listed(self) -> Iterator[ListedObject]:
        """List the records' objects (needs ListBucket)."""
        return self.store.list("runs/")

    def read_listed(self, listed: ListedObject) -> StoredRun | None:
        """Return a listed record; None if it is gone."""
        return self._read(listed.key)

    def _read(self, key: str) -> StoredRun | None:
        stored = self._object(key)
        if stored is None:
            return None
        record = _parse(stored, self.store.uri(key))
        return StoredRun(record, self._sighting(record, stored))

    def _object(self, key: str) -> StoredObject | None:
        try:
            return self.store.get(key, max_bytes=_RECORD_MAX_BYTES)
        except TooLarge as error:
            raise UnreadableRecordError(str(error)) from error

    def _is_there(self, key: str) -> bool:
        try:
            return self.store.get(key, max_bytes=_SMALL_MAX_BYTES) is not None
        except TooLarge:
            return True

    def request_cancel(self, record: RunRecord, reason: str) -> None:
        """Ask the handler of an attempt to end it; the handler checks for requests with every beat. In a durable
        execution the request applies to later attempts, too.
        """
        request = CancelRequest(reason=reason, requested_ms=self.clock())
        for key in _cancel_keys(record):
            self.store.put(key, request.model_dump_json(by_alias=True).encode())

    def is_cancelled(self, record: RunRecord) -> bool:
        """Return whether an attempt was asked to end."""
        return any(self._is_there(key) for key in _cancel_keys(record))

    def end(
        self,
        run: OpenRun,
        *,
        state: str,
        reason: str | None = None,
        may_hold_writes: bool = True,
        turn_completed: bool = False,
    ) -> tuple[str, ...]:
        """Record how the attempt ended; return a warning if a later attempt has taken the record over. The lease
        expires by itself.

        `may_hold_writes`: False only if every guarded write of the attempt is known to have left nothing.
        `turn_completed`: the lock service confirmed that the attempt completed its turn.
        """
        record = run.record.model_copy(
            update={
                "state": state,
                "ended_ms": self.clock(),
                "reason": None if reason is None else reason[:_REASON_MAX],
                "may_hold_writes": run.record.may_hold_writes or may_hold_writes,
                "turn_completed": run.record.turn_completed or turn_completed,
            }
        )
        try:
            self.store.replace(_record_key(record.run_key), _body(record), etag=run.etag)
        except PreconditionFailed:
            return ("the run's record was taken over by a later attempt; its state is that attempt's",)
        return ()


def result_key(run_id: str) -> str:
    """Return the key of an attempt's result document in the checkpoint bucket."""
    return f"{RESULTS}{run_id}/run_result.json"


def _has_done_its_work(record: RunRecord) -> bool:
    """Return whether a run has succeeded without a recorded turn."""
    return record.turn is None and record.state == SUCCESS


def digest_of(run_key: str) -> str:
    """Return the name of a run in keys: a run key may hold any character."""
    return hashlib.sha256(run_key.encode()).hexdigest()[:32]


def _record_key(run_key: str) -> str:
    return f"runs/{digest_of(run_key)}.json"


def _lease_key(record: RunRecord) -> str:
    return f"leases/run-{digest_of(record.run_key)}/{record.run_id}"


def _cancel_keys(record: RunRecord) -> tuple[str, ...]:
    # A request applies to one attempt, or to all of a durable execution, but not to later runs under the same token.
    names = (record.run_id, *(() if record.execution is None else (f"execution-{digest_of(record.execution)}",)))
    return tuple(f"cancels/{digest_of(record.run_key)}/{name}" for name in names)


def _body(record: RunRecord) -> bytes:
    return record.model_dump_json(by_alias=True).encode()


def _parse(stored: StoredObject, uri: str) -> RunRecord:
    try:
        return RunRecord.model_validate_json(stored.body)
    except ValidationError as error:
        raise UnreadableRecordError(
            f"{uri} is not a run record that this version can read ({error.error_count()} faults)"
        ) from error
