"""The main thread's work in a MicroVM: warm-up jobs, and the job of its event."""

from __future__ import annotations

import json
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from handler import observability
from handler.app import handle
from handler.input_errors import InputError
from handler.microvm.advanced_clock import AdvancedClock
from handler.microvm.renewal import renew_process, set_clock
from handler.outcome.outcome import of_error
from handler.process.tree import close_to_others
from handler.runs.store import result_key
from handler.settings import read_settings
from handler.stages.finish import record
from handler.stages.progress import Invocation, Progress
from safewriter.deadline import Deadline, epoch_ms
from safewriter.entropy import unique_id
from safewriter.objects.client import client_of
from safewriter.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from handler.microvm.lifecycle import Call
    from handler.microvm.warm_up import WarmUp
    from handler.outcome.result import Result
    from handler.services import Services
    from handler.settings import HandlerSettings

__all__ = ["Jobs", "terminate"]

_MARGIN_MS: Final = 60_000
_MARGIN_SHARE: Final = 10
"""The MicroVM's time begins before its hook `run`, and ends with its hook `terminate`: a minute of it, at most a tenth,
is not the job's.
"""


def terminate(microvm_id: str) -> None:
    """End a MicroVM, which otherwise costs money until its maximum duration."""
    from botocore.config import Config

    config = Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 3})
    client_of("lambda-microvms", config).terminate_microvm(microvmIdentifier=microvm_id)


@dataclass(slots=True)
class Jobs:
    """Runs the warm-up jobs and the one job of a MicroVM, on the main thread. `environment`: the image's variables.
    `memory_mb`: the MicroVM's memory. `terminate` ends the MicroVM at the end.
    """

    environment: Mapping[str, str]
    memory_mb: int
    services: Services
    warm_ups: WarmUp
    terminate: Callable[[str], None] = terminate
    set_clock: Callable[..., None] = set_clock
    _clock: AdvancedClock = field(default_factory=AdvancedClock)
    _stop_at_ms: int | None = None
    _is_expired: bool = False

    def warm_up(self, *, again: bool) -> None:
        """Run guarded jobs on an S3 of this machine. Raises `WarmUpError` if no JVM waits for a job afterwards."""
        close_to_others()
        total_ms = self._total_ms(read_settings(self.environment))
        self.warm_ups.run(self.environment, self.memory_mb, total_ms, self.services, again=again)

    def run(self, call: Call) -> None:
        """Run the event's job, store its result, and end the MicroVM."""
        try:
            self._run(call)
        except Exception:  # noqa: BLE001 - nobody but the log is told
            observability.logger.error(traceback.format_exc())
        try:
            self.terminate(call.microvm_id)
        except Exception as error:  # noqa: BLE001 - as above
            observability.logger.warning("this MicroVM runs on to its maximum duration, it could not end: %s", error)

    def expire_deadline(self) -> None:
        """Let the job's deadline come now, or as soon as it is known: the job gets SIGTERM, and its writes are
        settled.
        """
        self._is_expired = True
        if self._stop_at_ms is not None:
            self._clock.move_to(self._stop_at_ms)

    def renew(self, call: Call | None) -> None:
        """Renew ids and connections after a pause."""
        renew_process("resume" if call is None else call.microvm_id, str(epoch_ms()))

    def _run(self, call: Call) -> None:
        # A call of a hook has no id of its own, and there is one `run` in the life of a MicroVM.
        request_id = f"microvm-{call.microvm_id}"
        renew_process(request_id, call.payload)
        environment = {**self.environment, "SOAL_CONTINUE_MAX": "0"}  # no function could go on with the run
        settings = _settings(environment)
        problem = None if settings is None else self._clock_problem(settings)
        now_ms = epoch_ms()
        deadline = Deadline(now_ms + self._total_ms(settings), now_ms, self._clock.clock)
        invocation = Invocation(
            deadline=deadline,
            request_id=request_id,
            run_id=unique_id(),
            memory_mb=self.memory_mb,
            cold_start=True,
            function=call.microvm_id,
        )
        progress = Progress(invocation)
        observability.logger.append_keys(microvm_id=call.microvm_id, function_request_id=request_id)
        if settings is not None:
            self._stop_at_ms = Schedule.of(deadline, settings.guard.warn_before_ms).terminate_at_ms
            if self._is_expired:
                self.expire_deadline()
        if problem is None:
            result = handle(call.event, progress, environment, self.services)
        else:
            result = record(progress, of_error(problem, None, started=False), self.services)
        if settings is not None:
            self._keep(call.microvm_id, result, settings)
        observability.count(result)
        observability.metrics.flush_metrics()

    def _total_ms(self, settings: HandlerSettings | None) -> int:
        """Return the job's whole time: the MicroVM's maximum duration without the margin."""
        duration_ms = (900 if settings is None else settings.timeout_s) * 1000
        return duration_ms - min(_MARGIN_MS, duration_ms // _MARGIN_SHARE)

    def _clock_problem(self, settings: HandlerSettings) -> Exception | None:
        bucket = settings.guard.checkpoint_bucket.bucket
        try:
            self.set_clock(lambda: self.services.client().head_bucket(Bucket=bucket))
        except Exception as error:  # noqa: BLE001 - the result says it
            return error
        return None

    def _keep(self, microvm_id: str, result: Result, settings: HandlerSettings) -> None:
        """Store the result also under the MicroVM's id, the only name that who started it knows."""
        body = json.dumps(result.document(), ensure_ascii=False)
        observability.logger.info("the job has ended: %s", result.state)
        try:
            self.services.store(settings.guard.checkpoint_bucket).put(result_key(microvm_id), body.encode())
        except Exception as error:  # noqa: BLE001 - the log has it then
            observability.logger.error("the result is not at %s (%s): %s", result_key(microvm_id), error, body)


def _settings(environment: Mapping[str, str]) -> HandlerSettings | None:
    """Read the settings; None if they are wrong, which the job's result says."""
    try:
        return read_settings(environment)
    except InputError:
        return None
