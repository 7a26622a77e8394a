"""The sweeper's Lambda function: it settles abandoned writes and cleans up after them.

Run it on a schedule, one at a time. It needs ListBucket on the checkpoint bucket, which the jobs' function does not.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Final, Literal

from aws_lambda_powertools.metrics import MetricUnit
from pydantic import Field

from handler import observability
from handler.input_errors import InputError
from handler.json_document import JsonDocument
from handler.outcome.encodable import encodable
from handler.redaction.redact import Redactor, redact
from handler.secrets import Secrets, SecretUnavailableError, parse_references, read_secrets
from safewriter.bounds import shortened
from safewriter.deadline import Deadline, epoch_ms
from safewriter.objects.s3 import open_store, table_store
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import Status
from safewriter.schedule import Schedule
from safewriter.settings import Settings
from safewriter.settle.one_write import Action
from safewriter.settle.recovery import Recovery
from safewriter.settle.sweeper import Sweeper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from safewriter.deadline import Clock
    from safewriter.settle.sweeper import Look, Sweep

__all__ = ["SweepResult", "handle", "lambda_handler"]

_RESERVE_MAX_MS: Final = 30_000
_PROBLEMS_MAX: Final = 20


class SweepProblem(JsonDocument):
    """A write that could not be settled, cleaned up after, or read, and why."""

    write_key: str
    action: Action
    reason: str | None


class SweepResult(JsonDocument):
    """The result of a sweep; the numbers are writes that had a marker."""

    schema_version: Literal[1] = 1
    seen: int
    committed: int = Field(description="settled now, as committed")
    rolled_back: int = Field(description="settled now, as rolled_back")
    cleaned: int = Field(description="settled before, cleaned up after now")
    unclean: int = Field(description="settled; what they left behind could not be removed")
    alive: int = Field(description="left alone: their owner lives, or may still come")
    unclaimed: int = Field(description="not open; an attempt that has not claimed has left its marker")
    failed: int = Field(description="still open: no verdict yet, or manual inspection required")
    unreadable: int = Field(
        description="left alone: a document or marker is damaged, or of a version that is not known here"
    )
    left: int = Field(description="not looked at for lack of time: the next sweep's")
    oldest_open_ms: int | None = Field(description="age of the oldest write that is still open")
    problems: tuple[SweepProblem, ...] = Field(description=f"the first {_PROBLEMS_MAX}")


@observability.metrics.log_metrics
@observability.logger.inject_lambda_context(clear_state=True)
def lambda_handler(_event: object, context: LambdaContext) -> dict[str, Any]:
    """Sweep once; the event is ignored. Fails if the markers cannot be listed, a setting is wrong, or a catalog's
    secret cannot be read (after it has settled the writes that need none).
    """
    now_ms = epoch_ms()
    observability.metrics.add_metric("SweepStarted", MetricUnit.Count, 1)  # also of a sweep that fails
    # Texts are short, and have no limit of time together: false documents would use it up, and hide honest reasons.
    redactor = _masking(redact.knowing_settings(os.environ))
    secrets, unread = _secrets(os.environ)
    os.environ.update(secrets.of_catalogs)
    redactor = _masking(redactor.knowing_secrets(secrets.values.values()))
    deadline = Deadline(now_ms + context.get_remaining_time_in_millis(), now_ms)
    result = handle(os.environ, deadline, redactor=redactor)
    _count(result)
    if unread is not None:  # the writes that need no catalog are settled; the alarm reports the others
        raise unread
    return result.document()


def _masking(redactor: Redactor) -> Redactor:
    """Shorten all lines that this process logs, mask them by a redactor, and return it."""
    observability.mask_lines(lambda text: encodable(redactor(shortened(text))))
    return redactor


def _secrets(environment: Mapping[str, str]) -> tuple[Secrets, Exception | None]:
    """Return the secrets of SOAL_SECRETS, or none and the error: writes that need none are settled without them."""
    text = environment.get("SOAL_SECRETS")
    try:
        return (read_secrets(parse_references(text)) if text else Secrets()), None
    except (SecretUnavailableError, InputError, ValueError) as error:
        observability.logger.error("secrets: %s", error)
        return Secrets(), error


def handle(
    environment: Mapping[str, str], deadline: Deadline, clock: Clock = epoch_ms, redactor: Redactor = redact
) -> SweepResult:
    """Sweep until all writes are inspected or the time is nearly over; mask secrets in reasons.

    Raises `SettingError` for a wrong setting, `StoreError` if the markers cannot be listed.
    """
    settings = Settings.from_environment(environment)
    checkpoints = Checkpoints(open_store(settings.checkpoint_bucket))
    schedule = Schedule.of(deadline, _RESERVE_MAX_MS)

    def may_go_on() -> bool:
        return schedule.left_ms(schedule.warn_at_ms) > 0

    recovery = Recovery(checkpoints, table_store, clock=clock, audit_log=settings.audit_log, may_go_on=may_go_on)
    telling = threading.Lock()
    problems: list[SweepProblem] = []

    def report(look: Look) -> None:
        if look.action not in _METRICS:
            return
        with telling:
            problem = _problem(look, redactor)
            _tell(look, problem, clock())
            if len(problems) < _PROBLEMS_MAX:
                problems.append(problem)

    sweep = Sweeper(checkpoints, recovery, clock, may_go_on, on_look=report).sweep()
    return _result(sweep, problems, clock())


def _result(sweep: Sweep, problems: Sequence[SweepProblem], now_ms: int) -> SweepResult:
    settled = [look for look in sweep.looks if look.action is Action.SETTLED]
    since = sweep.open_since
    return SweepResult(
        seen=len(sweep.looks),
        committed=sum(look.status is Status.COMMITTED for look in settled),
        rolled_back=sum(look.status is Status.ROLLED_BACK for look in settled),
        cleaned=sweep.count(Action.CLEANED, Action.NONE),
        unclean=sweep.count(Action.UNCLEAN),
        alive=sweep.count(Action.ALIVE),
        unclaimed=sweep.count(Action.UNCLAIMED),
        failed=sweep.count(Action.FAILED),
        unreadable=sweep.count(Action.UNREADABLE),
        left=sweep.count(Action.LEFT),
        oldest_open_ms=None if since is None else _age_ms(since, now_ms),
        problems=tuple(problems),
    )


_METRICS: Final = {Action.FAILED: "SweepFailed", Action.UNREADABLE: "SweepUnreadable", Action.UNCLEAN: "SweptUnclean"}


def _tell(look: Look, problem: SweepProblem, now_ms: int) -> None:
    """Log a problem and print its metrics at once, so that they survive if the sweep dies at another write."""
    observability.logger.error("write %s: %s: %s", problem.write_key, problem.action, problem.reason)
    observability.metrics.add_metric(_METRICS[look.action], MetricUnit.Count, 1)
    if look.action is not Action.UNCLEAN and look.since is not None:
        observability.metrics.add_metric("OldestOpenMs", MetricUnit.Milliseconds, _age_ms(look.since, now_ms))
    observability.metrics.flush_metrics()


def _age_ms(since: datetime, now_ms: int) -> int:
    return max(0, now_ms - int(since.timestamp() * 1000))


def _problem(look: Look, redactor: Redactor) -> SweepProblem:
    reason = None if look.problem is None else encodable(redactor(look.problem))
    return SweepProblem(write_key=look.write_key, action=look.action, reason=reason)


def _count(result: SweepResult) -> None:
    """Turn a sweep into metrics for the alarms; `_tell` has counted the problems."""
    metrics = observability.metrics
    for name, number in (
        ("SweptCommitted", result.committed),
        ("SweptRolledBack", result.rolled_back),
        ("SweptCleaned", result.cleaned),
        *((name, 0) for name in _METRICS.values()),
        ("SweepLeft", result.left),
    ):
        metrics.add_metric(name, MetricUnit.Count, number)
    metrics.add_metric("OldestOpenMs", MetricUnit.Milliseconds, result.oldest_open_ms or 0)
