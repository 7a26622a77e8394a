"""The life of one MicroVM, as its hooks drive it: warm, snapshot, one job, end.

| hook        | answer                                                                                                |
|-------------|-------------------------------------------------------------------------------------------------------|
| `ready`     | 503 while the JVM warms up, then 200: Lambda takes the snapshot; 500 ends the build                   |
| `validate`  | in a copy at the build: 503 while another warm-up runs, then 200 or 500                               |
| `run`       | 200 at once, and the job runs on: a hook has a minute at most, a job eight hours; 400, 409, 500, 503  |
| `suspend`   | 200: a suspended job goes on later, or a settler finds it                                             |
| `resume`    | 200 once connections and ids are renewed                                                              |
| `terminate` | 200 once the job has ended, early if it must, and its writes are settled                              |

Hooks come on threads of their own; JVM and jobs are the main thread's, with which a JVM dies.
"""

from __future__ import annotations

import re
import threading
import traceback
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, Protocol

from handler.microvm.hooks import Answer
from handler.observability import logger
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Call", "Lifecycle", "Work"]

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,256}")
_END_WAIT_S: Final = 55.0
"""For the hook `terminate`, which Lambda gives a minute at most."""
_OK: Final = Answer(HTTPStatus.OK)


@dataclass(frozen=True, slots=True)
class Call:
    """What Lambda says at the start of a MicroVM: its id, and the event of its job."""

    microvm_id: str
    payload: str

    @classmethod
    def of(cls, body: bytes) -> Call:
        """Read the body of the hook `run`; `ValueError` describes the problem."""
        document = parsed(body)
        if not isinstance(document, dict):
            raise ValueError("the body must be a JSON object")  # noqa: TRY004 - a hook's answer, not a type error
        microvm_id, payload = document.get("microvmId"), document.get("runHookPayload")
        # Copies of one snapshot are told apart by it: without one no id of a write would be safe.
        if not isinstance(microvm_id, str) or not _ID.fullmatch(microvm_id):
            raise ValueError("microvmId must be the MicroVM's id")
        if not isinstance(payload, str):
            raise ValueError("runHookPayload must be the event of the job, as text")  # noqa: TRY004 - as above
        return cls(microvm_id, payload)

    @property
    def event(self) -> object:
        """The event: the payload's JSON, or the payload itself if it is none, as the path of a script."""
        try:
            return parsed(self.payload)
        except ValueError:
            return self.payload


class Work(Protocol):
    """What the main thread does. `warm_up` raises if the JVM could not take a job afterwards; `run` never raises."""

    def warm_up(self, *, again: bool) -> None: ...

    def run(self, call: Call) -> None: ...

    def expire_deadline(self) -> None:
        """Let the job end as if its deadline had come. On another thread."""
        ...

    def renew(self, call: Call | None) -> None:
        """Drop what a copy or a pause has made old. On another thread."""
        ...


class _Stage(StrEnum):
    WARMING = "warming up"
    READY = "ready"
    FAILED = "not able to run jobs"
    RUNNING = "running its job"
    ENDED = "done with its job"
    OVER = "about to end without a job"


class Lifecycle:
    """The state that hooks and the main thread share."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._stage = _Stage.WARMING
        self._why = ""
        self._call: Call | None = None
        self._valid: bool | None = None
        self._validating = False
        self._ended = threading.Event()

    @property
    def hooks(self) -> Mapping[str, Callable[[bytes], Answer]]:
        """The hooks by their names."""
        return {
            "ready": self._ready,
            "validate": self._validate,
            "run": self._run,
            "suspend": lambda _: _OK,
            "resume": self._resume,
            "terminate": self._terminate,
        }

    def serve(self) -> None:
        """Warm up, and do what the hooks ask for, until `stop`. On the main thread."""
        warm = self._warm(again=False)
        with self._lock:
            self._stage = _Stage.READY if warm else _Stage.FAILED
        while (call := self._calls.get()) is not None:
            call()

    def stop(self) -> None:
        """Let `serve` return."""
        self._calls.put(None)

    def _warm(self, *, again: bool) -> bool:
        try:
            self._work.warm_up(again=again)
        except Exception as error:  # noqa: BLE001 - the build fails with it
            self._why = f"{type(error).__name__}: {error}"
            logger.error("the warm-up failed, so this image starts no job: %s", traceback.format_exc())
            return False
        return True

    def _ready(self, _: bytes) -> Answer:
        with self._lock:
            if self._stage is _Stage.WARMING:
                return self._not_yet()
            return self._no() if self._stage is _Stage.FAILED else _OK

    def _validate(self, _: bytes) -> Answer:
        with self._lock:
            if self._stage is not _Stage.READY:
                return self._no() if self._stage is _Stage.FAILED else self._not_yet()
            if not self._validating:
                self._validating = True
                self._calls.put(self._check)
            if self._valid is None:
                return self._not_yet()
            return _OK if self._valid else self._no()

    def _check(self) -> None:
        valid = self._warm(again=True)
        with self._lock:
            self._valid = valid

    def _run(self, body: bytes) -> Answer:
        try:
            call = Call.of(body)
        except ValueError as error:
            return Answer(HTTPStatus.BAD_REQUEST, str(error))
        with self._lock:
            if self._call is not None:
                if self._call == call:  # Lambda repeats a call whose answer was lost
                    return _OK
                return Answer(HTTPStatus.CONFLICT, "a MicroVM runs one job, and this one has had its own")
            if self._stage is _Stage.FAILED:
                return self._no()
            if self._stage is not _Stage.READY:
                return self._not_yet()
            self._call, self._stage = call, _Stage.RUNNING
            self._calls.put(partial(self._do, call))
        return _OK

    def _do(self, call: Call) -> None:
        self._work.run(call)
        with self._lock:
            self._stage = _Stage.ENDED
        self._ended.set()

    def _resume(self, _: bytes) -> Answer:
        self._work.renew(self._call)
        return _OK

    def _terminate(self, _: bytes) -> Answer:
        with self._lock:
            running = self._stage is _Stage.RUNNING
            if self._stage is _Stage.READY:
                self._stage = _Stage.OVER
        if running:
            self._work.expire_deadline()
            if not self._ended.wait(_END_WAIT_S):
                logger.error("the job has not ended; the sweeper settles its writes")
        return _OK

    def _not_yet(self) -> Answer:
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE, f"is {self._stage}")

    def _no(self) -> Answer:
        return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"is {self._stage}: {self._why}")
