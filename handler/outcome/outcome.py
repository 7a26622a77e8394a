"""Judge an attempt: the child's end and the verdicts on its writes make one state. Pure: a table, read from the top.

| writes                          | child                                  | state      |
|---------------------------------|----------------------------------------|------------|
| unknown, or perhaps unreported  | any                                    | UNKNOWN    |
| any                             | ended for a lost turn, not well        | FAILED     |
| any                             | cancelled, not ended well              | CANCELLED  |
| some are committed              | ended by the deadline                  | INCOMPLETE |
| none is committed               | ended by the deadline                  | TIMED_OUT  |
| any                             | ended well, but its script has failed  | FAILED     |
| one is not committed            | ended well                             | FAILED     |
| one is incomplete               | ended well                             | FAILED     |
| any                             | ended well, but a guard was not made   | FAILED     |
| a block ended without success() | ended well                             | FAILED     |
| all committed, or none          | ended well                             | SUCCESS    |
| any                             | exit 0, without a witness              | UNKNOWN    |
| any                             | any other end                          | FAILED     |

"Ended well": the script's own process has ended with exit code 0, all its threads included, before anything told the
job to stop. The witness is the process's parent (`handler/driver/server.py`); neither the JVM's exit code nor a script
that answers SIGTERM by exit(0) is one.

"Ended by the deadline": the shutdown sequence stopped the script, or SafeWriter did (exit 124), or SafeWriter refused a
block or part for want of time: that of a script that had committed a write, or that swallowed the error and ended with
exit code 0. INCOMPLETE can be continued: the same job under the same token skips the committed writes. A write is
incomplete if it lacks rows of its block, or if its block has left rows beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handler.input_errors import InputError, NoJob
from handler.outcome.faults import fault_of
from handler.outcome.state import Fault, Outcome, State
from handler.process.child import Stop
from safewriter.errors import EXIT_DEADLINE, SafeWriterError, TurnSkippedError, UnreadableCheckpointError
from safewriter.record.document import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from handler.outcome.evidence import JobEvidence
    from safewriter.record.journal import Event
    from safewriter.settle.supervisor import WriteReport

__all__ = ["is_our_fault", "judge", "of_error"]

_SIGNALLED: Final = 128
_INTERNAL_ERROR: Final = "InternalError"


def judge(evidence: JobEvidence) -> Outcome:
    """Return the state by the table above."""
    exit_code, signal_number = _end(evidence)
    state, details, fault = _verdict(evidence, exit_code, signal_number)
    return Outcome(state, details, fault, exit_code, signal_number)


def of_error(error: Exception, writes: tuple[WriteReport, ...] | None, *, started: bool) -> Outcome:
    """Judge an attempt that ended with an error in the handler; `writes` is None if they are not settled."""
    if isinstance(error, NoJob | TurnSkippedError) and not started:
        return Outcome(State.SKIPPED, f"the job was not started: {error}", None)
    if isinstance(error, InputError) and not started:
        fault = Fault("UsageError", str(error), error.field, usage=True)
        return Outcome(State.FAILED, f"usage error, the job was not started: {error}", fault)
    if _may_pass(error) and not started:
        fault = Fault(type(error).__name__, str(error), retryable=True)
        return Outcome(State.FAILED, f"the job was not started, try again later: {error}", fault)
    message = f"{type(error).__name__}: {error}"
    fault = Fault(_INTERNAL_ERROR, message)
    if not started:
        details = f"the handler failed before the job was started; please report this: {message}"
        return Outcome(State.FAILED, details, fault)
    if writes is None or any(write.status == Status.UNKNOWN for write in writes):
        details = f"the handler failed while the job ran, and the outcome of its writes is unknown: {message}"
        return Outcome(State.UNKNOWN, details, fault)
    details = f"the handler failed while the job ran; the job was ended and its writes are settled: {message}"
    return Outcome(State.FAILED, details, fault)


def _may_pass(error: Exception) -> bool:
    """Return whether the same event may succeed later, also for a lock with a damaged record, which can be restored."""
    return isinstance(error, SafeWriterError) and (error.retryable or isinstance(error, UnreadableCheckpointError))


def is_our_fault(outcome: Outcome) -> bool:
    """Return whether the outcome is a bug of the handler, whose traceback should be logged."""
    return outcome.fault is not None and outcome.fault.type == _INTERNAL_ERROR


def _end(evidence: JobEvidence) -> tuple[int | None, int | None]:
    """Return the job's exit code or signal. The JVM reports a signal that ended the Python driver as an exit code above
    128; the journal distinguishes this from a script that exits with such a code.
    """
    code, own = evidence.ended.exit_code, evidence.ended.own_exit
    is_unknown = code is None and evidence.ended.signal is None
    if own is not None and (evidence.ended.stop is not None or is_unknown):
        # The script had ended; the shutdown sequence, or something else, ended its JVM.
        return (own, None) if own >= 0 else (None, -own)
    if code is None or code <= _SIGNALLED or evidence.exited == code:
        return code, evidence.ended.signal
    return None, code - _SIGNALLED


def _verdict(
    evidence: JobEvidence, exit_code: int | None, signal_number: int | None
) -> tuple[State, str, Fault | None]:
    writes = evidence.writes
    if writes is None or evidence.unsettled or any(write.status == Status.UNKNOWN for write in writes):
        return _unknown(evidence)
    uncommitted = [write for write in writes if write.status != Status.COMMITTED]
    has_ended_well = exit_code == 0 and evidence.ended.own_exit == 0
    if evidence.ended.stop is Stop.CANCELLED and not has_ended_well:
        return _cancelled(evidence, writes, uncommitted)
    if _by_deadline(evidence, exit_code, uncommitted):
        return _at_deadline(evidence, writes, uncommitted)
    if has_ended_well:
        return _ended_well(evidence, writes, uncommitted)
    if exit_code == 0:
        return _without_witness(evidence)
    fault = fault_of(evidence, exit_code, signal_number)
    count = len(writes) - len(uncommitted)
    tail = f"; {count} of {len(writes)} writes are committed and stay" if count else "; none of its writes is committed"
    return State.FAILED, fault.message + (tail if writes else ""), fault


def _unknown(evidence: JobEvidence) -> tuple[State, str, Fault]:
    if evidence.writes is None:
        message = f"the outcome of the job's writes is unknown ({evidence.unsettled})"
    else:
        unknown = [write for write in evidence.writes if write.status == Status.UNKNOWN]
        message = (
            f"the outcome of {_names(unknown)} is unknown: {unknown[0].reason}"
            if unknown
            else f"whether the job made other writes than those in `writes` is not known: {evidence.unsettled}"
        )
    fault = Fault("UnknownOutcome", message)
    return State.UNKNOWN, f"{message}. Assume neither success nor failure; {evidence.retry} settles it first", fault


def _without_witness(evidence: JobEvidence) -> tuple[State, str, Fault]:
    message = "the JVM ended with exit code 0, but nobody saw the script's own process end"
    fault = Fault("UnknownOutcome", message)
    return State.UNKNOWN, f"{message}. Assume neither success nor failure; {evidence.retry} starts it again", fault


def _by_deadline(evidence: JobEvidence, exit_code: int | None, uncommitted: list[WriteReport]) -> bool:
    if _is_stopped(evidence):
        return True
    late = [entry for entry in evidence.journal if entry.event == "too_late"]
    if exit_code == 0:  # an error of SafeWriter may have been swallowed
        return bool(late) or _is_cut_short(evidence)
    if any(entry.event == "deadline" for entry in evidence.journal):
        return True  # SafeWriter has settled a block; its exception may have lost its type on the way to the script
    if late:
        return len(evidence.writes or ()) > len(uncommitted)
    uncaught = evidence.uncaught
    if exit_code != EXIT_DEADLINE:
        return False
    # SafeWriter ended it, by its exception or, if it cannot wait for the script, at once; not a script's exit(124).
    return evidence.exited != EXIT_DEADLINE or (uncaught is not None and uncaught["exitCode"] == EXIT_DEADLINE)


def _is_stopped(evidence: JobEvidence) -> bool:
    """Return whether the shutdown sequence began before the script's own end."""
    return evidence.ended.stop in (Stop.TERMINATED, Stop.KILLED) and evidence.ended.own_exit is None


def _is_cut_short(evidence: JobEvidence) -> bool:
    """Return whether the deadline has ended a block, and that block's success() has not returned in spite of it."""
    return not _nonces(evidence, "deadline") <= _nonces(evidence, "succeeded")


def _nonces(evidence: JobEvidence, *events: Event) -> set[str]:
    return {str(entry.fields.get("nonce")) for entry in evidence.journal if entry.event in events}


def _at_deadline(
    evidence: JobEvidence, writes: tuple[WriteReport, ...], uncommitted: list[WriteReport]
) -> tuple[State, str, Fault]:
    if len(writes) > len(uncommitted):
        tally = f"{len(writes) - len(uncommitted)} of {len(writes)} writes that it began are committed"
        message = f"{_why_incomplete(evidence)}; {tally}"
        details = f"{message}; {evidence.retry} continues after them"
        return State.INCOMPLETE, details, Fault("DeadlineExceeded", message, retryable=True)
    stand = ", ".join(f"{_names([write])} is {write.status}" for write in uncommitted) or "no guarded write had begun"
    message = f"{_why_incomplete(evidence)}; {stand}"
    details = f"{message}. Give the function a longer timeout or more memory, or the job less to do; {evidence.retry}"
    return (
        State.TIMED_OUT,
        f"{details} repeats what is not committed",
        Fault("DeadlineExceeded", message, retryable=True),
    )


def _why_incomplete(evidence: JobEvidence) -> str:
    """Return whether the deadline came, or was too near for the script to begin the next write."""
    late = [entry.fields for entry in evidence.journal if entry.event == "too_late"]
    if _is_stopped(evidence):
        return "the deadline came before the script's end"
    if any(entry.event == "deadline" for entry in evidence.journal) or not late:
        return "the deadline came before the end of a block of the script"
    if (parts_left := late[-1].get("partsLeft")) is None:
        return "the deadline was too near to begin the next write"
    return (
        f"the next part ({late[-1].get('part')!r}) was not begun, since it would not have ended in time: it takes about"
        f" {late[-1].get('wantedS')} s, and there were {late[-1].get('leftS')} s; {parts_left} part(s) are left"
    )


def _cancelled(
    evidence: JobEvidence, writes: tuple[WriteReport, ...], uncommitted: list[WriteReport]
) -> tuple[State, str, Fault]:
    committed = len(writes) - len(uncommitted)
    stand = "none of its writes is committed"
    if committed:
        stand = f"{committed} of {len(writes)} writes that it began are committed and stay"
    if evidence.turn_lost is not None:
        details = f"{evidence.turn_lost}; {stand}; {evidence.retry}"
        return State.FAILED, details, Fault("TurnLost", evidence.turn_lost, retryable=True)
    message = f"the run was cancelled on request; {stand}"
    retry = f"{evidence.retry[0].upper()}{evidence.retry[1:]}"
    return State.CANCELLED, f"{message}. {retry} starts it again", Fault("Cancelled", message)


def _ended_well(
    evidence: JobEvidence, writes: tuple[WriteReport, ...], uncommitted: list[WriteReport]
) -> tuple[State, str, Fault | None]:
    """Judge a script whose process exited with 0, by the script's own end and its writes."""
    if evidence.uncaught is not None or evidence.exited:
        return _ended_in_spite(evidence)
    if uncommitted:
        return State.FAILED, *_not_committed(uncommitted, evidence.retry)
    not_made = next((entry.fields for entry in evidence.journal if entry.event == "not_made"), None)
    if not_made is not None:
        message = (
            f"the script ended with exit code 0, but its guard of {not_made.get('table')} could not be made"
            f" ({not_made.get('type')}: {not_made.get('reason')})"
        )
        return State.FAILED, f"{message}. Mend the script", Fault("WriteNotCommitted", message)
    incomplete = next((write for write in writes if write.incomplete is not None), None)
    if incomplete is not None:
        return State.FAILED, *_incomplete(incomplete)
    if left := _left_without_success(evidence, writes):
        return State.FAILED, *_without_success(left, evidence.retry)
    return State.SUCCESS, _success(evidence, writes), None


def _left_without_success(evidence: JobEvidence, writes: tuple[WriteReport, ...]) -> list[WriteReport]:
    """Return the writes whose last block neither returned from success() nor was skipped, although a commit stands."""
    accepted = _ended_by(evidence, writes, "succeeded", "write_skipped")
    return [write for write in writes if write not in accepted]


def _ended_by(evidence: JobEvidence, writes: tuple[WriteReport, ...], *events: Event) -> list[WriteReport]:
    """Return the writes whose last block has had one of the events."""
    last = {
        entry.fields.get("checkpoint"): str(entry.fields.get("nonce"))
        for entry in evidence.journal
        if entry.event == "write_opened"
    }
    nonces = _nonces(evidence, *events)
    return [write for write in writes if last.get(write.checkpoint) in nonces]


def _without_success(left: list[WriteReport], retry: str) -> tuple[str, Fault]:
    message = (
        f"the script ended with exit code 0, but a block of {_names(left)} ended without success(), and its commit"
        f" stays ({left[0].reason})"
    )
    return f"{message}. Mend the script; {retry} skips that write", Fault("NoSuccess", message)


def _ended_in_spite(evidence: JobEvidence) -> tuple[State, str, Fault]:
    """Judge a script that failed, and whose process something made exit with 0, such as a hook that reports errors."""
    uncaught = evidence.uncaught
    why = evidence.own_error or f"exit code {evidence.exited}"
    message = f"the script ended with {why}, although its process left exit code 0"
    kind = "ScriptExit" if uncaught is None else str(uncaught["type"])
    return State.FAILED, f"{message}; its committed writes stay", Fault(kind, message)


def _success(evidence: JobEvidence, writes: tuple[WriteReport, ...]) -> str:
    if not writes:
        return "the script ended with exit code 0; it made no guarded write"
    skipped = _ended_by(evidence, writes, "write_skipped")
    parts = {
        "committed": [write for write in writes if write not in skipped],
        "skipped, since committed before": skipped,
    }
    told = (f"; {what}: {_names(those)}" for what, those in parts.items() if those)
    return f"the script ended with exit code 0{''.join(told)}"


def _not_committed(uncommitted: list[WriteReport], retry: str) -> tuple[str, Fault]:
    open_writes = [write for write in uncommitted if write.status == Status.IN_PROGRESS]
    write = (open_writes or uncommitted)[0]
    message = (
        f"the script ended with exit code 0, but {_names(open_writes or uncommitted)} is {write.status}"
        f" ({write.reason or 'success() was not reached'})"
    )
    return f"{message}; {retry}", Fault("WriteNotCommitted", message, retryable=bool(open_writes))


def _incomplete(write: WriteReport) -> tuple[str, Fault]:
    message = f"the script ended with exit code 0, but {_names([write])} is not whole: {write.incomplete}"
    return f"{message}. Mend the script; a retry with the same token fails", Fault("WriteIncomplete", message)


def _names(writes: Iterable[WriteReport]) -> str:
    return ", ".join(f"{write.table}{f' ({write.step})' if write.step else ''}" for write in writes)
