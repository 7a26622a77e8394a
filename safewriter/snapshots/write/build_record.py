"""Renew the record of a running build: clean-up keeps the shards of a run whose lease has not expired."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Self

from safewriter.objects.store import PreconditionFailed, StoreError
from safewriter.snapshots.format.build_record import RECORD_MAX_BYTES, BuildDocument

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.objects.store import ObjectStore
    from safewriter.snapshots.config import WriteConfig
    from safewriter.snapshots.settle.leftovers import BuildId

__all__ = ["BuildRecord"]

_log = logging.getLogger(__name__)
_LEASE: Final = timedelta(minutes=10)
_BEAT_S: Final = 60.0
_TRIES: Final = 3


class BuildRecord:
    """The record of one build, for the length of a `with`. It never fails the run: errors are logged.

    A late heartbeat never overwrites the end, since each write is conditional on the previous version. `ref` is the URL
    of the record; None if it could not be written.
    """

    def __init__(
        self,
        store: ObjectStore,
        names: BuildId,
        config: WriteConfig,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        beat_s: float = _BEAT_S,
    ) -> None:
        self.ref: str | None = None
        self._store, self._now, self._beat_s = store, now, beat_s
        self._etag = ""
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="soal-build-record", daemon=True)
        self._key = names.record_key
        started = now()
        self._document = BuildDocument(
            run_id=names.run_id,
            status="running",
            started_at=started,
            updated_at=started,
            lease_expires_at=started + _LEASE,
            s3_prefix=config.s3_prefix,
            shard_prefix=names.shard_prefix,
            db_path_template=config.output.db_path_template,
        )

    def __enter__(self) -> Self:
        try:
            self._etag = self._store.create(self._key, self._document.encode())
        except Exception as error:  # noqa: BLE001 - the record must not fail the run
            _log.warning("the run has no record, so clean-up may take it for dead: %s", error)
        else:
            self.ref = self._store.uri(self._key)
            self._thread.start()
        return self

    def published(self, manifest_ref: str) -> None:
        """Note the manifest for the next write of the record."""
        with self._lock:
            self._document = replace(self._document, manifest_ref=manifest_ref)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        if self.ref is None:
            return
        self._ended.set()
        self._thread.join()  # bounded: the thread waits for the event, or writes
        outcome: dict[str, Any] = {"status": "succeeded"}
        if kind is not None:
            outcome = {"status": "failed", "error_type": kind.__name__, "error_message": str(error)}
        self._write(timedelta(0), **outcome)

    def _beat(self) -> None:
        while not self._ended.wait(self._beat_s):
            self._write(_LEASE)

    def _write(self, lease: timedelta, **changes: Any) -> None:  # noqa: ANN401 - fields of the document
        with self._lock:
            now = self._now()
            self._document = replace(self._document, updated_at=now, lease_expires_at=now + lease, **changes)
            try:
                self._replace(self._document.encode())
            except Exception as error:  # noqa: BLE001 - as above
                _log.warning("%s was not renewed: %s", self.ref, error)

    def _replace(self, body: bytes) -> None:
        for _ in range(_TRIES):
            try:
                self._etag = self._store.replace(self._key, body, etag=self._etag)
            except PreconditionFailed:  # an earlier write of this build has landed after all
                stored = self._store.get(self._key, max_bytes=RECORD_MAX_BYTES)
                if stored is None:
                    raise StoreError("it is not there any more") from None
                self._etag = stored.etag
            else:
                return
        raise StoreError("it changes faster than it can be written")
