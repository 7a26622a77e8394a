"""The handler judges an attempt: the child's end and its writes' verdicts give state, reason, and use of a retry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import delta.exceptions
import pytest

from handler.input_errors import InputError
from handler.outcome.evidence import JobEvidence
from handler.outcome.faults import fault_of
from handler.outcome.outcome import judge, of_error
from handler.outcome.state import State
from handler.process.child import Ended, Stop
from handler.process.memory_kills import MemoryKills
from handler.redaction.redact import Redactor
from handler.runs.store import AttemptRunningError
from handler.spark.missing_dependencies import Missing
from safewriter.objects import StoreError
from safewriter.record.document import Status
from safewriter.record.journal import Entry, Event
from safewriter.settle.supervisor import WriteReport

COMMITTED = WriteReport("s3://lake/a", "delta", None, Status.COMMITTED, 7, 10, 100, None, None, "s3://c/1")
ROLLED_BACK = WriteReport("s3://lake/b", "delta", "s", Status.ROLLED_BACK, None, None, None, "why", None, "s3://c/2")
INCOMPLETE = replace(COMMITTED, incomplete="a statement was refused")
UNKNOWN = WriteReport("s3://lake/c", "delta", None, Status.UNKNOWN, None, None, None, "no look-up", None, "s3://c/3")
OTHERS = WriteReport("s3://lake/d", "delta", None, Status.IN_PROGRESS, None, None, None, "owned", None, "s3://c/4")


WORKER_DIED = {"type": "SparkException", "message": "Job aborted: Python worker exited unexpectedly (crashed)"}


def evidence(
    exit_code: int | None = 0,
    signal: int | None = None,
    *,
    stop: Stop | None = None,
    writes: tuple[WriteReport, ...] | None = (),
    own: int | None = None,
    exited: int | None = None,
    uncaught: dict[str, Any] | None = None,
    kills: int | None = 0,
    machine_kills: int | None = 0,
    java_out_of_memory: bool = False,
    deadline: bool = False,
    too_late: bool = False,
    doubt: str = "",
) -> JobEvidence:
    events: dict[Event, bool] = {"deadline": deadline, "too_late": too_late}
    told = [name for name, is_so in events.items() if is_so]
    entries = [Entry("python_started", 1, {}), *(Entry(name, 2, {"nonce": "n"}) for name in told)]
    if uncaught is not None:
        entries.append(Entry("uncaught", 2, {"type": "E", "message": "m", "exitCode": 1, **uncaught}))
    for write in writes or ():
        entries.append(Entry("write_opened", 2, {"checkpoint": write.checkpoint, "nonce": write.checkpoint}))
        entries.append(Entry("succeeded", 2, {"nonce": write.checkpoint}))
    if exited is not None:
        entries.append(Entry("python_exited", 3, {"exitCode": exited}))
    own = 0 if own is None and exit_code == 0 and stop is None else own
    ended = Ended(exit_code, signal, stop, 1, 2, 100, frozenset(), own)
    unsettled = "S3 is gone" if writes is None else doubt
    killed = MemoryKills(kills, machine_kills)
    return JobEvidence(ended, tuple(entries), writes, unsettled, killed, java_out_of_memory, "a retry")


@pytest.mark.parametrize("witness", ["succeeded", "write_skipped"])
def test_a_commit_alone_is_no_success(witness: Event) -> None:
    """A block that an exception or the script's end has left keeps a commit that cannot be undone: FAILED."""
    whole = evidence(writes=(COMMITTED,))
    left = replace(whole, journal=tuple(entry for entry in whole.journal if entry.event != "succeeded"))
    outcome = judge(left)
    assert (outcome.state, outcome.fault and outcome.fault.type) == (State.FAILED, "NoSuccess")
    assert "ended without success(), and its commit stays" in outcome.details
    found = replace(left, journal=(*left.journal, Entry(witness, 3, {"nonce": COMMITTED.checkpoint})))
    assert judge(found).state is State.SUCCESS


def test_a_retry_tells_which_writes_it_has_skipped() -> None:
    """A person must see whether an answer's rows were written by this attempt or by an earlier one."""
    other = replace(COMMITTED, table="s3://lake/b", checkpoint="s3://c/9")
    both = evidence(writes=(COMMITTED, other))
    skipped = tuple(
        replace(entry, event="write_skipped")
        if entry.event == "succeeded" and entry.fields["nonce"] == "s3://c/9"
        else entry
        for entry in both.journal
    )
    assert judge(replace(both, journal=skipped)).details == (
        "the script ended with exit code 0; committed: s3://lake/a; skipped, since committed before: s3://lake/b"
    )


@pytest.mark.parametrize("given", [{"uncaught": {"type": "ValueError"}, "exited": 1}, {"exited": 1}, {"uncaught": {}}])
def test_a_script_that_failed_is_no_success_whatever_its_process_leaves(given: dict[str, Any]) -> None:
    """A hook may end the process with exit code 0 after an error."""
    assert judge(evidence(writes=(COMMITTED,), **given)).state is State.FAILED


@pytest.mark.parametrize(
    ("given", "state", "error"),
    [
        # exit 0
        (evidence(), State.SUCCESS, None),
        (evidence(writes=(COMMITTED, COMMITTED)), State.SUCCESS, None),
        (evidence(writes=(COMMITTED, ROLLED_BACK)), State.FAILED, "WriteNotCommitted"),
        (evidence(writes=(COMMITTED, OTHERS)), State.FAILED, "WriteNotCommitted"),
        # exit codes of the script
        (evidence(None, own=0, exited=0), State.SUCCESS, None),
        (
            evidence(1, own=0, exited=0),
            State.FAILED,
            "ScriptExit",
        ),  # the JVM alone failed, after a script that ended well
        (evidence(3, exited=3), State.FAILED, "ScriptExit"),
        (evidence(3, exited=3, writes=(COMMITTED,)), State.FAILED, "ScriptExit"),
        (evidence(2, exited=2), State.FAILED, "ScriptExit"),
        (evidence(75, exited=75), State.FAILED, "TryAgain"),
        (evidence(124, exited=124), State.FAILED, "ScriptExit"),
        (evidence(200, exited=200), State.FAILED, "ScriptExit"),
        (evidence(1, exited=1, uncaught={"type": "ValueError"}), State.FAILED, "ValueError"),
        (evidence(2, exited=2, uncaught={"type": "StepError", "exitCode": 2}), State.FAILED, "StepError"),
        # SafeWriter met the deadline, and the script raised another error instead
        (
            evidence(1, exited=1, uncaught={"type": "StreamingQueryException"}, deadline=True),
            State.TIMED_OUT,
            "DeadlineExceeded",
        ),
        (evidence(1, exited=1, deadline=True, writes=(COMMITTED,)), State.INCOMPLETE, "DeadlineExceeded"),
        # or the script has swallowed SafeWriter's error
        (evidence(0, exited=0, deadline=True, writes=(COMMITTED,)), State.INCOMPLETE, "DeadlineExceeded"),
        (evidence(0, exited=0, deadline=True, writes=(ROLLED_BACK,)), State.TIMED_OUT, "DeadlineExceeded"),
        # too late for another write: committed writes can be continued, otherwise nothing has happened
        (evidence(75, exited=75, too_late=True, writes=(COMMITTED, ROLLED_BACK)), State.INCOMPLETE, "DeadlineExceeded"),
        (evidence(1, exited=1, too_late=True, writes=(COMMITTED,)), State.INCOMPLETE, "DeadlineExceeded"),
        (evidence(75, exited=75, too_late=True, writes=(ROLLED_BACK,)), State.FAILED, "TryAgain"),
        (evidence(0, exited=0, too_late=True, writes=(COMMITTED,)), State.INCOMPLETE, "DeadlineExceeded"),
        (evidence(0, exited=0, too_late=True, writes=(COMMITTED, ROLLED_BACK)), State.INCOMPLETE, "DeadlineExceeded"),
        (evidence(0, exited=0, too_late=True), State.TIMED_OUT, "DeadlineExceeded"),
        # killed
        (evidence(None, 9), State.FAILED, "Signal"),
        (evidence(137), State.FAILED, "Signal"),
        (evidence(None, None), State.FAILED, "Unkillable"),
        # memory
        (evidence(3, java_out_of_memory=True), State.FAILED, "OutOfMemory"),
        (evidence(3, exited=3, java_out_of_memory=True), State.FAILED, "ScriptExit"),
        (evidence(None, 9, kills=1), State.FAILED, "OutOfMemory"),
        (evidence(1, exited=1, uncaught={"type": "Py4JError"}, kills=1), State.FAILED, "OutOfMemory"),
        (evidence(0, kills=1, writes=(COMMITTED,)), State.SUCCESS, None),
        # a kill on the machine concerns the job only if a process of the job has died by it
        (evidence(None, 9, kills=None, machine_kills=1), State.FAILED, "OutOfMemory"),
        (evidence(137, kills=None, machine_kills=1), State.FAILED, "OutOfMemory"),
        (evidence(None, 9, kills=None, machine_kills=0), State.FAILED, "Signal"),
        (evidence(None, 9, kills=None, machine_kills=None), State.FAILED, "Signal"),
        (evidence(None, 9, kills=0, machine_kills=1), State.FAILED, "Signal"),
        (evidence(None, 11, kills=None, machine_kills=1), State.FAILED, "Signal"),
        (
            evidence(1, exited=1, uncaught={"type": "MergeError"}, kills=None, machine_kills=1),
            State.FAILED,
            "MergeError",
        ),
        (evidence(1, exited=1, uncaught=WORKER_DIED, kills=None, machine_kills=1), State.FAILED, "OutOfMemory"),
        (evidence(1, exited=1, uncaught=WORKER_DIED, kills=None, machine_kills=0), State.FAILED, "SparkException"),
        (evidence(1, exited=1, uncaught=WORKER_DIED, kills=0, machine_kills=1), State.FAILED, "SparkException"),
        (evidence(3, exited=3, kills=None, machine_kills=1), State.FAILED, "ScriptExit"),
        # cancelled
        (evidence(143, stop=Stop.CANCELLED), State.CANCELLED, "Cancelled"),
        (evidence(None, 9, stop=Stop.CANCELLED, writes=(COMMITTED, ROLLED_BACK)), State.CANCELLED, "Cancelled"),
        (evidence(None, 9, stop=Stop.CANCELLED, writes=(UNKNOWN,)), State.UNKNOWN, "UnknownOutcome"),
        # the deadline
        (evidence(143, stop=Stop.TERMINATED), State.TIMED_OUT, "DeadlineExceeded"),
        (evidence(None, 9, stop=Stop.KILLED), State.TIMED_OUT, "DeadlineExceeded"),
        (evidence(None, 9, stop=Stop.KILLED, writes=(ROLLED_BACK,)), State.TIMED_OUT, "DeadlineExceeded"),
        (evidence(None, 9, stop=Stop.KILLED, writes=(COMMITTED, ROLLED_BACK)), State.INCOMPLETE, "DeadlineExceeded"),
        (evidence(None, 9, stop=Stop.KILLED, writes=(COMMITTED,)), State.INCOMPLETE, "DeadlineExceeded"),
        (evidence(124), State.TIMED_OUT, "DeadlineExceeded"),
        (evidence(124, exited=124, uncaught={"exitCode": 124}), State.TIMED_OUT, "DeadlineExceeded"),
        (evidence(124, writes=(COMMITTED,)), State.INCOMPLETE, "DeadlineExceeded"),
        # an unknown outcome stays UNKNOWN, whatever the exit code
        (evidence(0, writes=(COMMITTED, UNKNOWN)), State.UNKNOWN, "UnknownOutcome"),
        (evidence(0, writes=None), State.UNKNOWN, "UnknownOutcome"),
        (evidence(None, 9, stop=Stop.KILLED, writes=(UNKNOWN,)), State.UNKNOWN, "UnknownOutcome"),
        (evidence(None, 9, stop=Stop.KILLED, writes=None), State.UNKNOWN, "UnknownOutcome"),
        (evidence(3, java_out_of_memory=True, writes=None), State.UNKNOWN, "UnknownOutcome"),
    ],
)
def test_the_table(given: JobEvidence, state: State, error: str | None) -> None:
    """Every end has its state; SUCCESS needs exit 0 and every write committed."""
    outcome = judge(given)
    assert outcome.state is state
    assert (outcome.fault.type if outcome.fault is not None else None) == error
    assert outcome.details


@pytest.mark.parametrize(
    ("stop", "state"),
    [
        (Stop.TERMINATED, State.INCOMPLETE),
        (Stop.KILLED, State.INCOMPLETE),
        (Stop.CANCELLED, State.CANCELLED),
    ],
)
@pytest.mark.parametrize(("exit_code", "signal"), [(0, None), (143, None), (None, 9), (None, None)])
def test_a_job_that_was_told_to_stop_has_ended_well_only_if_its_process_was_gone_before(
    stop: Stop, state: State, exit_code: int | None, signal: int | None
) -> None:
    """A script may answer SIGTERM by exit(0), and its main thread may end before its other threads: neither the exit
    code nor the script's own note is a witness.
    """
    stopped = evidence(exit_code, signal, stop=stop, exited=0, writes=(COMMITTED,))
    assert judge(stopped).state is state
    outcome = judge(replace(stopped, ended=replace(stopped.ended, own_exit=0)))
    assert (outcome.state, outcome.exit_code, outcome.signal) == (State.SUCCESS, 0, None)


def test_a_script_that_had_failed_by_itself_keeps_its_own_error_at_the_deadline() -> None:
    """Only its JVM has met the deadline; a retry would fail as well."""
    failed = judge(evidence(143, stop=Stop.TERMINATED, own=1, exited=1, uncaught={"type": "ValueError"}))
    assert (failed.state, failed.exit_code, failed.fault and failed.fault.type) == (State.FAILED, 1, "ValueError")
    killed = judge(evidence(143, stop=Stop.TERMINATED, own=-11))
    assert (killed.state, killed.exit_code, killed.signal) == (State.FAILED, None, 11)


def test_without_a_witness_of_the_script_s_end_nothing_is_known() -> None:
    """A script, or a library, can end the JVM with exit code 0 at any point."""
    found = evidence(0, exited=0, writes=(COMMITTED,))
    outcome = judge(replace(found, ended=replace(found.ended, own_exit=None)))
    assert (outcome.state, outcome.fault and outcome.fault.type) == (State.UNKNOWN, "UnknownOutcome")
    assert "nobody saw the script's own process end" in outcome.details


def test_a_deadline_in_spite_of_which_success_returned_takes_nothing_from_the_script() -> None:
    """Each block that the deadline has ended needs its own note of that."""
    found = evidence(0, deadline=True, writes=(COMMITTED,))
    passed = replace(found, journal=(*found.journal, Entry("succeeded", 3, {"nonce": "n"})))
    assert judge(passed).state is State.SUCCESS
    other = Entry("deadline", 3, {"nonce": "other"})
    assert judge(replace(passed, journal=(*passed.journal, other))).state is State.INCOMPLETE


def test_parts_that_are_left_make_a_run_incomplete_although_the_script_ended_well() -> None:
    """The script has swallowed the error of `parts`; the result says how many parts are left."""
    fields = {"nonce": "n", "part": "4", "partsLeft": 8, "wantedS": 7, "leftS": 2}
    given = evidence(writes=(COMMITTED,))
    outcome = judge(replace(given, journal=(*given.journal, Entry("too_late", 3, fields))))
    assert outcome.state is State.INCOMPLETE
    assert "8 part(s) are left" in outcome.details
    assert outcome.fault is not None
    assert outcome.fault.retryable


def test_a_part_that_was_not_begun_is_no_deadline_that_came() -> None:
    """There was time left, but the next part would have needed more: the result says so, with the parts left."""
    fields = {"nonce": "n", "part": "2025-03-01", "partsLeft": 5, "wantedS": 78, "leftS": 67}
    given = evidence(75, exited=75, writes=(COMMITTED,))
    declined = judge(replace(given, journal=(*given.journal, Entry("too_late", 3, fields))))
    assert (declined.state, "the deadline came" in declined.details) == (State.INCOMPLETE, False)
    for told in ("'2025-03-01'", "takes about 78 s", "there were 67 s", "5 part(s) are left", "a retry continues"):
        assert told in declined.details
    assert "too near to begin the next write" in judge(evidence(75, too_late=True, writes=(COMMITTED,))).details
    for given in (
        evidence(1, deadline=True, too_late=True, writes=(COMMITTED,)),
        evidence(None, 9, stop=Stop.KILLED, too_late=True, writes=(COMMITTED,)),
    ):
        assert judge(given).details.startswith("the deadline came")


def test_a_kill_for_memory_does_not_hide_the_script_s_own_error() -> None:
    """The error may have another cause, whatever was killed at the same time."""
    own = evidence(1, exited=1, uncaught={"type": "ValueError", "message": "no such day"}, kills=2)
    assert "the kernel killed 2 process(es) of the job for memory" in judge(own).details
    assert "ValueError: no such day" in judge(own).details
    told = evidence(1, exited=1, uncaught={"type": "E"}, kills=None, machine_kills=1)
    raised = Entry("raised", 3, {"type": "E", "ofSpark": True, "text": WORKER_DIED["message"]})
    assert "a Python worker of the job has died" in judge(replace(told, journal=(*told.journal, raised))).details


def test_the_signal_of_the_driver_is_seen_through_the_jvm() -> None:
    """Java reports it as 128 plus its number; a script that exits with such a code has noted it in the journal."""
    assert (judge(evidence(139)).exit_code, judge(evidence(139)).signal) == (None, 11)
    assert (judge(evidence(139, exited=139)).exit_code, judge(evidence(139, exited=139)).signal) == (139, None)


def test_what_may_be_tried_again() -> None:
    """Exit 75, another attempt's unfinished write and the deadline may be retried; a failure of the script may not."""
    for given, retryable in (
        (evidence(75, exited=75, uncaught={"exitCode": 75, "retryable": True}), True),
        (evidence(0, writes=(OTHERS,)), True),
        (evidence(124), True),
        (evidence(3, exited=3), False),
        (evidence(0, writes=(UNKNOWN,)), False),
    ):
        fault = judge(given).fault
        assert fault is not None
        assert fault.retryable is retryable


def test_the_details_name_cause_and_next_step() -> None:
    """They name the tables, the reason, and whether a retry helps."""
    details = judge(evidence(None, 9, stop=Stop.KILLED, writes=(COMMITTED, ROLLED_BACK))).details
    assert "1 of 2 writes" in details
    assert "a retry continues" in details
    assert "s3://lake/c" in judge(evidence(0, writes=(UNKNOWN,))).details
    assert "S3 is gone" in judge(evidence(0, writes=None)).details
    assert "s3://lake/a" in judge(evidence(writes=(COMMITTED,))).details


@pytest.mark.parametrize(
    ("error", "started", "writes", "state", "kind", "retryable"),
    [
        (InputError("f", "p"), False, None, State.FAILED, "UsageError", False),
        (AttemptRunningError("x"), False, None, State.FAILED, "AttemptRunningError", True),
        (StoreError("x"), False, None, State.FAILED, "StoreError", True),
        (StoreError("x"), True, None, State.UNKNOWN, "InternalError", False),
        (KeyError("x"), False, None, State.FAILED, "InternalError", False),
        (KeyError("x"), True, None, State.UNKNOWN, "InternalError", False),
        (KeyError("x"), True, (COMMITTED, UNKNOWN), State.UNKNOWN, "InternalError", False),
        (KeyError("x"), True, (COMMITTED,), State.FAILED, "InternalError", False),
        (InputError("f", "p"), True, (), State.FAILED, "InternalError", False),
    ],
)
def test_errors_of_the_handler(
    error: Exception,
    started: bool,  # noqa: FBT001
    writes: tuple[WriteReport, ...] | None,
    state: State,
    kind: str,
    retryable: bool,  # noqa: FBT001
) -> None:
    """A handler error after the job's start says nothing about its writes."""
    outcome = of_error(error, writes, started=started)
    assert outcome.fault is not None
    assert (outcome.state, outcome.fault.type, outcome.fault.retryable) == (state, kind, retryable)


HIVE = Missing("Hive", "use paths", classes=("org.hive.",))


def missed(code: int, text: str, **uncaught: Any) -> JobEvidence:
    """Return the evidence of a job that an exception of Spark ended."""
    found = evidence(code, exited=code, uncaught={"type": "Py4JJavaError", "message": "no\nclass", **uncaught})
    raised = Entry("raised", 2, {"type": "Py4JJavaError", "ofSpark": True, "text": text})
    return replace(found, journal=(*found.journal, raised), missing=(HIVE,))


def test_a_job_that_missed_what_the_image_does_not_have_is_told_what_to_do() -> None:
    """The advice comes first, then the job's own message, on one line; the caller must change something."""
    outcome = judge(missed(1, "java.lang.ClassNotFoundException: org.hive.A"))
    assert outcome.fault is not None
    assert (outcome.state, outcome.fault.type, outcome.fault.usage) == (State.FAILED, "NotInImage", True)
    assert outcome.fault.message == (
        "the image does not have Hive: use paths. A derived image can add it (image/derived) (Py4JJavaError: no class)"
    )


def test_a_job_that_may_be_tried_again_missed_nothing() -> None:
    """Its exception already says what to do: retry."""
    outcome = judge(missed(75, "ClassNotFoundException: org.hive.A", exitCode=75, retryable=True))
    assert outcome.fault is not None
    assert (outcome.fault.type, outcome.fault.retryable, outcome.fault.usage) == ("Py4JJavaError", True, False)


@pytest.mark.parametrize(
    ("fields", "message", "usage"),
    [
        ({}, "the script ended with exit code 2; its last lines are in logTail", False),
        (
            {"message": None, "line": "job.py, line 5", "ofArguments": False},
            "the script ended with exit code 2 (job.py, line 5); its last lines are in logTail",
            False,
        ),
        (
            {"message": "no rows", "line": "job.py, line 5", "ofArguments": False},
            "the script ended with exit code 2: no rows (job.py, line 5)",
            False,
        ),
        (
            {"message": "--table is missing", "line": None, "ofArguments": True},
            "the script refused its arguments: --table is missing",
            True,
        ),
    ],
)
def test_a_script_that_ends_itself_is_told_by_its_own_words(
    fields: dict[str, Any],
    message: str,
    usage: bool,  # noqa: FBT001 - a column of the table above
) -> None:
    """Arguments that it refuses are the caller's to change."""
    given = evidence(2)
    fault = judge(replace(given, journal=(*given.journal, Entry("python_exited", 3, {"exitCode": 2, **fields})))).fault
    assert fault is not None
    assert (fault.type, fault.message, fault.usage) == ("ScriptExit", message, usage)
    assert fault.field == ("entryPointArguments" if usage else None)


@pytest.mark.parametrize(
    ("text", "fields", "told"),
    [
        (
            "org.apache.hadoop.fs.s3a.UnknownStoreException: `s3a://gone/t'",
            {"message": "UnknownStoreException: `s3a://gone/t': Bucket does not exist"},
            (
                "the bucket gone does not exist: create it, or correct its name in the script or its arguments"
                " (job.py, line 5)"
            ),
        ),
        (
            "java.nio.file.AccessDeniedException: s3a://lake/t: listObjects()",
            {"message": "role/job is not authorized"},
            (
                "S3 has denied a request for s3a://lake/t: if the script or its arguments name that bucket (a table's"
                " log may name any), name it in the stack's context key data or read_only_data, and the key that"
                " encrypts it, if any, in data_kms_key_arns"
                " (Py4JJavaError: role/job is not authorized (job.py, line 5))"
            ),
        ),
        (
            "org.apache.hadoop.fs.s3a.UnknownStoreException: `s3a://gone/t'",
            {"type": "UsageError", "message": "the bucket of s3a://gone/t does not exist; create it", "exitCode": 2},
            "UsageError: the bucket of s3a://gone/t does not exist; create it (job.py, line 5)",
        ),
    ],
    ids=["said by the advice", "more than the advice", "with its own next step"],
)
def test_an_error_is_told_once_with_the_script_s_line_and_with_advice_first(
    text: str, fields: dict[str, Any], told: str
) -> None:
    """The log has the traceback; an answer is read alone."""
    code = fields.get("exitCode", 1)
    assert judge(missed(code, text, line="job.py, line 5", **fields)).details == told


def test_an_exit_code_that_the_script_chose_is_its_own() -> None:
    """The script has caught its exceptions."""
    chosen = judge(replace(evidence(3, exited=3), missing=(HIVE,)))
    assert chosen.fault is not None
    assert chosen.fault.type == "ScriptExit"


def test_a_line_that_lacks_fields_says_nothing() -> None:
    """A job may write anything into its journal."""
    found = evidence(124, exited=124)
    found = replace(found, journal=(*found.journal, Entry("uncaught", 1, {})))
    assert judge(found).state is State.FAILED


def test_a_job_that_was_ended_for_its_turn_may_be_tried_again() -> None:
    """It ended as a cancelled job does, but was not cancelled."""
    judged = judge(replace(evidence(143, stop=Stop.CANCELLED, writes=(ROLLED_BACK,)), turn_lost="the turn has ended"))
    assert judged.state is State.FAILED
    assert judged.fault is not None
    assert (judged.fault.type, judged.fault.retryable) == ("TurnLost", True)


def test_only_a_write_that_another_attempt_holds_makes_an_uncommitted_one_worth_a_retry() -> None:
    """A script that never calls success() would leave it uncommitted again."""
    faults = [judge(evidence(writes=(one,))).fault for one in (ROLLED_BACK, OTHERS)]
    assert [one is not None and one.retryable for one in faults] == [False, True]


def test_a_script_that_ended_well_is_no_success_beside_a_write_that_is_not_whole() -> None:
    """The reason names the missing rows, and says that a retry with the same token does not help."""
    outcome = judge(evidence(writes=(COMMITTED, INCOMPLETE)))
    assert (outcome.state, outcome.fault.type if outcome.fault else None) == (State.FAILED, "WriteIncomplete")
    assert "a statement was refused" in outcome.details
    assert "retry with the same token fails" in outcome.details
    assert judge(evidence(writes=(INCOMPLETE, ROLLED_BACK))).state is State.FAILED


@pytest.mark.parametrize("writes", [(), (COMMITTED,)])
def test_a_guard_that_could_not_be_made_is_no_success(writes: tuple[WriteReport, ...]) -> None:
    """The script has swallowed the error, and no verdict covers the rows. The script's own failure takes precedence."""
    fields = {"table": "s3a://lake/t", "type": "UsageError", "reason": "step=5 is no text"}
    told = Entry("not_made", 2, fields)
    found = evidence(writes=writes)
    outcome = judge(replace(found, journal=(*found.journal, told)))
    assert outcome.state is State.FAILED
    assert "its guard of s3a://lake/t could not be made (UsageError: step=5 is no text)" in outcome.details
    assert outcome.fault is not None
    assert outcome.fault.type == "WriteNotCommitted"
    failed = evidence(exit_code=1, writes=writes)
    assert "guard" not in judge(replace(failed, journal=(*failed.journal, told))).details


STALE = "org.apache.iceberg.exceptions.CommitFailedException: stale"


@pytest.mark.parametrize(
    ("type_name", "text", "retryable"),
    [
        *(
            (name, "", True)
            for name in delta.exceptions.__dict__
            if name.endswith("Exception") and name.startswith(("Concurrent", "Delta", "Metadata", "Protocol"))
        ),
        *(
            ("Py4JJavaError", f"org.apache.spark.SparkException: failed\n{package}.{name}: x", True)
            for package in ("io.delta.exceptions", "org.apache.spark.sql.delta")
            for name in delta.exceptions.__dict__
            if name.endswith("Exception") and name.startswith(("Concurrent", "Delta", "Metadata", "Protocol"))
        ),
        ("Py4JJavaError", "io.delta.exceptions.DeltaAnalysisException: x", False),
        ("Py4JJavaError", STALE, True),
        ("Py4JJavaError", "org.apache.iceberg.exceptions.CommitStateUnknownException: no answer", False),
        ("Py4JJavaError", f"a.E: For input: {STALE}", False),
        ("AnalysisException", "", False),
    ],
)
def test_a_conflict_with_another_writer_s_commit_may_be_tried_again(
    type_name: str,
    text: str,
    retryable: bool,  # noqa: FBT001 - a column of the table above
) -> None:
    """The attempt failed; a retry reads the table anew. A commit with an unknown outcome is not a conflict."""
    given = evidence(1, exited=1, uncaught={"type": type_name})
    told = Entry("raised", 2, {"type": type_name, "ofSpark": True, "text": text})
    fault = fault_of(replace(given, journal=(*given.journal, told)), 1, None)
    assert (fault.type, fault.retryable) == (type_name, retryable)


@pytest.mark.parametrize(
    ("end", "error", "retryable"),
    [
        (("StreamingQueryException", True), ("ConcurrentAppendException", True, ""), True),
        (("StreamingQueryException", True), ("Py4JJavaError", True, f"a.E: x\n{STALE}"), True),
        (("StreamingQueryException", True), ("Py4JJavaError", True, f"a.E: {STALE}"), False),
        (("StreamingQueryException", True), ("ValueError", False, STALE), False),
        (("StreamingQueryException", False), ("Py4JJavaError", True, STALE), False),
        (("RuntimeError", False), ("ConcurrentAppendException", True, ""), False),
        (("AnalysisException", True), ("Py4JJavaError", True, STALE), False),
    ],
)
def test_a_conflict_of_a_batch_ends_its_stream_and_may_be_tried_again(
    end: tuple[str, bool],
    error: tuple[str, bool, str],
    retryable: bool,  # noqa: FBT001 - a column of the table above
) -> None:
    """The batch's error stands behind the stream's; what stands behind another error may have been handled."""
    rows = [{"type": name, "ofSpark": of_spark, "text": text} for name, of_spark, text in ((*end, ""), error)]
    given = evidence(1, exited=1, uncaught={"type": end[0]})
    told = [Entry("raised", 2, row) for row in rows]
    assert fault_of(replace(given, journal=(*given.journal, *told)), 1, None).retryable is retryable


def test_a_conflict_is_one_whatever_value_its_message_names() -> None:
    """A conflict names the values of the partitions, which are data."""
    text = "ConcurrentAppendException: files were added to [c=ClassNotFoundException: org.hive.A]"
    fault = judge(missed(1, text, type="ConcurrentAppendException")).fault
    assert fault is not None
    assert (fault.type, fault.retryable, fault.usage) == ("ConcurrentAppendException", True, False)


def test_the_error_of_a_script_is_searched_for_secrets_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the verdict needs it: the search takes its time, and the job's turn is given back after it."""
    searched: list[str] = []

    def search(_: Redactor, text: str, *__: object, **___: object) -> str:
        searched.append(text)
        return "masked"

    monkeypatch.setattr(Redactor, "shortened", search)
    outcome = judge(evidence(1, exited=1, uncaught={"message": "a bad argument"}, machine_kills=1, kills=None))
    assert (searched, outcome.details) == (["a bad argument"], "E: masked")
