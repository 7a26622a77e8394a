"""One execution of a durable function, polled until it has ended."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from handler.outcome.state import State
from safewriter.parsing import parsed
from soal.console.problem import EXIT_DEADLINE, EXIT_TRY_AGAIN, Problem
from soal.invocation.report import Report, report_of
from soal.remote.answer import Answer, FunctionError
from soal.remote.failure import failed
from soal.remote.polling import POLL_S, polled

if TYPE_CHECKING:
    from collections.abc import Callable

    from soal.console.output import Output
    from soal.console.progress import JobProgress

_EVENTS: Final = 10
"""The newest events; an attempt and the pause after it make five."""
_ENDS: Final = ("SUCCEEDED", "FAILED", "TIMED_OUT", "STOPPED")
_ENDED_OTHERWISE: Final = {
    "TIMED_OUT": "the execution has timed out; its committed steps stay",
    "STOPPED": "the execution was stopped; its committed steps stay",
}


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution by ARN; `lambda_` is a boto3 client. The execution goes on if the caller stops polling."""

    arn: str
    lambda_: Any
    poll_s: float = POLL_S

    def report(self, says: Callable[[str], None]) -> Report:
        """Wait for the end, which Lambda brings after the execution's own timeout at the latest; call `says` for each
        attempt. Raises `Problem` if Lambda refuses or keeps failing.
        """
        begun = time.monotonic()

        def look() -> Report | str:
            reply = self.lambda_.get_durable_execution(DurableExecutionArn=self.arn)
            if reply["Status"] in _ENDS:
                return self._of(reply, round((time.monotonic() - begun) * 1000))
            return self._attempts()

        def lost(error: Exception) -> Problem:
            todo = "allow lambda:GetDurableExecution and lambda:GetDurableExecutionHistory on it"
            return failed(f"execution {self.arn} goes on, but: {error}", error, todo)

        return polled(look, says, is_refused=_is_refused, lost=lost, poll_s=self.poll_s)

    def _of(self, reply: Any, duration_ms: int) -> Report:  # noqa: ANN401 - the service's answer
        status = reply["Status"]
        if status in _ENDED_OTHERWISE:
            return Report(None, _ENDED_OTHERWISE[status], EXIT_DEADLINE, duration_ms)
        if status == "SUCCEEDED":
            return report_of(Answer(parsed(reply["Result"]), None, timed_out=False, duration_ms=duration_ms), None)
        fault = reply.get("Error") or {}
        # The SDK prefixes the exception's name with its module.
        error = FunctionError(str(fault.get("ErrorType")).rpartition(".")[2], str(fault.get("ErrorMessage")))
        return report_of(Answer(None, error, timed_out=False, duration_ms=duration_ms), None)

    def _attempts(self) -> str:
        """Describe the newest attempt, and how the one before it ended."""
        events = self.lambda_.get_durable_execution_history(
            DurableExecutionArn=self.arn, IncludeExecutionData=True, ReverseOrder=True, MaxItems=_EVENTS
        )["Events"]
        name = next((event["Name"] for event in events if event["EventType"] == "StepStarted"), "starting")
        event = next((event for event in events if event["EventType"] in ("StepSucceeded", "StepFailed")), None)
        text = str(name).replace("-", " ")
        if event is None:
            return text
        is_over = event["Name"] == name
        return f"{text} {'has ended' if is_over else 'runs'}; {'it' if is_over else 'the one before'} {_summary(event)}"


def _is_refused(error: Exception) -> bool:
    code = str(error.response["Error"]["Code"]) if isinstance(error, ClientError) else ""
    return code == "404" or code.startswith(("AccessDenied", "ResourceNotFound", "Validation", "UnrecognizedClient"))


def _summary(event: Any) -> str:  # noqa: ANN401 - the service's answer
    try:
        attempt = json.loads(event["StepSucceededDetails"]["Result"]["Payload"])
        return f"ended as {State(attempt['result']['state'])} with {int(attempt['committed'])} commits"
    except (KeyError, ValueError, TypeError):
        return "was lost"


def followed(execution: Execution, run_key: str | None, out: Output, progress: JobProgress) -> Report:
    """Show an execution's attempts until it ends. Raises `Problem` on Ctrl-C; the execution goes on."""
    out.remark(f"started the execution {execution.arn}")
    try:
        return execution.report(progress.says)
    except KeyboardInterrupt:
        key = run_key or execution.arn.rpartition("/")[2]
        raise Problem(
            "stopped waiting; the execution goes on",
            todo=f"look again with: soal runs show {key}; end it with: soal runs cancel {key}",
            exit_code=EXIT_TRY_AGAIN,
        ) from None
