"""Spark's event logs of an attempt, for its history server: from the sandbox into the checkpoint bucket.

Spark writes them to the function's disk, and the handler copies them once the job has ended. So the log of a job that
was killed is kept too, up to the last event that Spark has written; secrets are masked; and the copy keeps its time.
"""

from __future__ import annotations

import json
import os
import stat
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from handler.process.bounded_call import OverdueError, within
from handler.redaction.effort import WITHHELD
from handler.runs.store import digest_of
from safewriter.objects import StoreError
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from handler.redaction.redact import Redactor
    from handler.runs.record import RunRecord
    from safewriter.objects import ObjectStore

__all__ = ["EVENT_LOGS", "UNFINISHED", "keep", "prefix_of"]

EVENT_LOGS: Final = "eventlogs/"
"""Where they lie in the checkpoint bucket: a folder that a history server can read as it is."""
UNFINISHED: Final = ".inprogress"
"""The end of the name of a log without its end, as Spark has it: the application was killed."""
_BYTES_MAX: Final = 32 << 20
EVENT_MAX: Final = 256 << 10
"""In bytes. The search takes about 120 bytes for each escape of a text, from the memory of the next run's JVM."""
_LOGS_MAX: Final = 8
"""A script may stop its Spark and start another one, each with a log of its own."""
_MASKING_SHARE: Final = 0.5
_OPENED: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a job may have put a link or pipe there


def prefix_of(run_key: str) -> str:
    """Return the beginning of the keys of a run's event logs; the number of the attempt follows."""
    return f"{EVENT_LOGS}{digest_of(run_key)}-"


def keep(
    folder: Path,
    store: ObjectStore,
    record: RunRecord,
    redactor: Redactor,
    *,
    budget_ms: int,
    when_overdue: Callable[[], None],
    clock: Callable[[], float] = time.monotonic,
) -> tuple[str, ...]:
    """Put an attempt's event logs into the checkpoint bucket, without secrets; return sentences about what is missing.

    Of a log the first 32 MiB are kept, as far as half of the time suffices to search them for secrets, without events
    of more than 256 KiB. A copy that is overdue holds its memory for longer: `when_overdue` is called, which must not
    leave a JVM to the next run.
    """
    search_s = _MASKING_SHARE * budget_ms / 1000
    effort = redactor.effort.anew(search_s)
    # A search that ends by its CPU time alone would leave no time for the copy on a machine that is busy or small.
    copy = _Copy(folder, store, record, replace(redactor, effort=effort), until_s=clock() + search_s, clock=clock)
    try:
        return within(budget_ms, copy.put_all)
    except Exception as error:  # noqa: BLE001 - the job has ended, and its state must stay
        effort.end()
        if isinstance(error, OverdueError):
            when_overdue()
        told = isinstance(error, StoreError | OverdueError | OSError)
        return (f"Spark's event log is not kept: {error if told else repr(error)}",)


@dataclass(frozen=True, slots=True)
class _Copy:
    folder: Path
    store: ObjectStore
    record: RunRecord
    redactor: Redactor
    until_s: float
    """When the search for secrets ends, by `clock`."""
    clock: Callable[[], float]

    def put_all(self) -> tuple[str, ...]:
        missing: list[str] = []
        # A script can put folders there (`setCheckpointDir`).
        entries = [entry for entry in os.scandir(self.folder) if not entry.is_dir(follow_symlinks=False)]
        names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
        for number, name in enumerate(names[:_LOGS_MAX], start=1):
            key = f"{prefix_of(self.record.run_key)}{self.record.attempt:06}-{self.record.run_id}-{number}"
            key += UNFINISHED if name.endswith(UNFINISHED) else ""
            try:
                events, is_whole = self._events(name)
            except OSError as error:
                missing.append(f"Spark's event log {name} is not kept: {error.strerror}")
                continue
            kept = self._searched(events)
            self.store.put(key, "".join(f"{event}\n" for event in kept).encode())
            if not is_whole or len(kept) < len(events):
                missing.append(
                    f"events are missing in Spark's event log {self.store.uri(key)}: it is larger than 32 MiB, or an"
                    " event than 256 KiB, or there was no time to search all of it for secrets"
                )
        return tuple(missing)

    def _searched(self, events: list[bytes]) -> list[str]:
        """Return without secrets what could be searched of the events until the time was over."""
        kept: list[str] = []
        for event in events:
            if self.clock() >= self.until_s:
                break
            if len(event) <= EVENT_MAX and (masked := self._masked(event)) is not None:
                kept.append(masked)
        return kept

    def _events(self, name: str) -> tuple[list[bytes], bool]:
        """Return the whole lines of a log, and whether these are all."""
        with os.fdopen(os.open(self.folder / name, _OPENED), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return [], False
            body = file.read(_BYTES_MAX)
            is_whole = not file.read(1)
        # Spark may have been killed within the last line, which would hold half of a secret.
        return body.split(b"\n")[:-1], is_whole

    def _masked(self, line: bytes) -> str | None:
        """Return an event without secrets; None if it could not be searched."""
        # JSON writes a tab or a quotation mark as two characters: only the texts themselves have a secret's form.
        try:
            event: Any = parsed(line.decode(errors="replace"))
            if not isinstance(event, dict):
                return None
            masked = json.dumps(self.redactor.metric(event), separators=(",", ":"))
        except (ValueError, RecursionError):
            return None
        return None if WITHHELD in masked else masked
