"""Explain why a job failed by itself: memory, a missing dependency, its own exception, a signal, its exit code."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

from handler.outcome.advice import advice_for
from handler.outcome.state import Fault
from handler.spark.missing_dependencies import explain
from safewriter.errors import EXIT_TRY_AGAIN, EXIT_USAGE

if TYPE_CHECKING:
    from handler.outcome.evidence import JobEvidence

__all__ = ["fault_of"]

_EXIT_JAVA_OUT_OF_MEMORY: Final = 3
_WORKER_DIED: Final = "Python worker exited unexpectedly"
"""Spark's message when a worker exits unasked."""


_OF_DELTA: Final = (
    *("ConcurrentAppendException", "ConcurrentDeleteDeleteException", "ConcurrentDeleteReadException"),
    *("ConcurrentTransactionException", "ConcurrentWriteException", "DeltaConcurrentModificationException"),
    *("MetadataChangedException", "ProtocolChangedException"),
)
_CONFLICTS: Final = frozenset(
    {
        *(
            f"{package}.{name}"
            for package in ("io.delta.exceptions", "org.apache.spark.sql.delta")
            for name in _OF_DELTA
        ),
        # A commit with an unknown outcome raises CommitStateUnknownException instead.
        "org.apache.iceberg.exceptions.CommitFailedException",
    }
)
"""Java's exceptions that say: another writer committed first, and this commit is not in the table."""
_OF_PYTHON: Final = frozenset(name.rpartition(".")[2] for name in _CONFLICTS)
"""Their names in Python: once a script has imported `delta`, PySpark raises these in their place."""
_STREAM_ENDED: Final = "StreamingQueryException"
"""PySpark's exception for a stream that failed; the error of its batch, if any, stands behind it."""


def fault_of(evidence: JobEvidence, exit_code: int | None, signal_number: int | None) -> Fault:
    """Return why a child failed that nothing stopped."""
    uncaught = evidence.uncaught
    if fault := _out_of_memory(evidence, exit_code, signal_number) or _not_in_image(evidence, exit_code):
        return fault
    if uncaught is not None and evidence.exited == exit_code:
        usage = uncaught["exitCode"] == EXIT_USAGE
        retryable = exit_code == EXIT_TRY_AGAIN or (exit_code == 1 and _is_conflict(evidence, str(uncaught["type"])))
        return Fault(str(uncaught["type"]), _told(evidence, usage=usage), retryable=retryable, usage=usage)
    if signal_number is not None:
        return Fault("Signal", f"the job was ended by signal {signal_number} ({_signal_name(signal_number)})")
    if exit_code is None:
        return Fault("Unkillable", "the job could not be ended; the kernel holds it")
    if exit_code == EXIT_TRY_AGAIN:
        return Fault("TryAgain", "the script ended with exit code 75: try again later", retryable=True)
    return _script_exit(evidence, exit_code)


def _told(evidence: JobEvidence, *, usage: bool) -> str:
    """Return the exception in words, each fact once: a usage error names its next step itself."""
    words = str(evidence.own_error)
    advice = None if usage else advice_for(evidence.raised)
    if advice is None:
        return words
    rest = (evidence.uncaught or {})["line"] if advice.says_all else f" ({words})"
    return f"{evidence.redactor(advice.text)}{rest}"


def _script_exit(evidence: JobEvidence, exit_code: int) -> Fault:
    refusal = evidence.refusal or {"message": "", "line": "", "ofArguments": False}
    reason, line = refusal["message"], refusal["line"]
    if refusal["ofArguments"] is True:
        return Fault(
            "ScriptExit", f"the script refused its arguments: {reason}{line}", "entryPointArguments", usage=True
        )
    told = f"the script ended with exit code {exit_code}"
    return Fault("ScriptExit", f"{told}: {reason}{line}" if reason else f"{told}{line}; its last lines are in logTail")


def _is_conflict(evidence: JobEvidence, type_name: str) -> bool:
    """Return whether another writer committed first, for example when two jobs create the same table: a retry reads the
    table anew and may succeed.
    """
    errors = evidence.raised
    is_stream = bool(errors) and errors[0].of_spark and errors[0].type == _STREAM_ENDED
    decisive = errors[: 2 if is_stream else 1]
    lines = [line for error in decisive if error.of_spark for line in error.text.splitlines()]
    names = {type_name, *(error.type for error in decisive)}
    return not (names.isdisjoint(_OF_PYTHON) and _CONFLICTS.isdisjoint(line.partition(": ")[0] for line in lines))


def _out_of_memory(evidence: JobEvidence, exit_code: int | None, signal_number: int | None) -> Fault | None:
    java = exit_code == _EXIT_JAVA_OUT_OF_MEMORY and evidence.exited is None
    if java and evidence.saw_java_out_of_memory:
        return Fault(
            "OutOfMemory",
            "the Java heap was full and the JVM ended itself; give the function more memory, or the job more,"
            " smaller partitions",
        )
    killed = _killed_for_memory(evidence, signal_number)
    if killed is None:
        return None
    tail = "" if evidence.own_error is None else f". The script's own error: {evidence.own_error}"
    return Fault(
        "OutOfMemory",
        f"{killed}; give the function more memory, or lower spark.driver.memory to leave more to Python{tail}",
    )


def _killed_for_memory(evidence: JobEvidence, signal_number: int | None) -> str | None:
    """Describe the evidence that the kernel killed a process of the job for memory; None if there is none. The
    machine's counter alone proves nothing: it counts processes of others, too.
    """
    kills = evidence.memory_kills
    if kills.job:
        return f"the kernel killed {kills.job} process(es) of the job for memory"
    if kills.job == 0 or not kills.machine:
        return None
    count = f"and this machine's kernel killed {kills.machine} process(es) for memory meanwhile"
    if signal_number == signal.SIGKILL:
        return f"the job was ended by signal 9 (SIGKILL), which the handler did not send, {count}"
    texts = (*(error.text for error in evidence.raised), str((evidence.uncaught or {}).get("message")))
    if any(_WORKER_DIED in text for text in texts):
        return f"a Python worker of the job has died, {count}"
    return None


def _not_in_image(evidence: JobEvidence, exit_code: int | None) -> Fault | None:
    """Return the fault of a job that failed for a missing dependency, unless it continued, chose its exit code, or may
    be tried again.
    """
    uncaught = evidence.uncaught
    if uncaught is None or evidence.exited != exit_code or exit_code == EXIT_TRY_AGAIN:
        return None
    # The message of a conflict holds values of partitions, which may look like any error.
    if _is_conflict(evidence, str(uncaught["type"])):
        return None
    sentence = explain(evidence.raised, evidence.missing)
    if sentence is None:
        return None
    words = " ".join(str(evidence.own_error).split())
    return Fault("NotInImage", f"{sentence} ({words})", usage=True)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
