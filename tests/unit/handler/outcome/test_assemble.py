"""The handler fills the result document from any stage of an invocation: all keys, times, versions, masked texts."""

from __future__ import annotations

import pytest

from handler.outcome.assemble import result_of
from handler.outcome.state import Fault, Outcome, State
from handler.process.child import Ended
from handler.redaction.redact import Redactor
from handler.request.job import requested
from handler.settings import read_settings
from handler.stages.progress import Progress, Settled
from safewriter.deadline import Deadline
from safewriter.record.document import Status
from safewriter.record.journal import Entry
from safewriter.settle.supervisor import WriteReport
from tests.support.walks import new_walk, settled

DEADLINE = Deadline(10_000, 1_000, lambda: 1_500)


def ended(*journal: Entry) -> Progress:
    """Return the progress of an invocation whose job has ended, with a journal."""
    progress = new_walk(DEADLINE)
    end = Ended(0, None, None, started_ms=2_000, ended_ms=7_000, peak_mb=512, survivors=frozenset())
    progress.settled = Settled(end, journal, (), "", settle_ms=3)
    return progress


def test_an_answer_with_nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """All keys are present; those of stages not reached are null. A deadline that came early makes no job longer."""
    monkeypatch.setattr("handler.outcome.assemble.epoch_ms", lambda: 1_500)
    result = result_of(new_walk(DEADLINE), Outcome(State.FAILED, "d", Fault("UsageError", "m", "f", usage=True)))
    assert (result.run_id, result.attempt, result.result_uri, result.writes, result.log_tail) == (
        None,
        None,
        None,
        (),
        (),
    )
    assert (result.timings.total_ms, result.timings.remaining_ms, result.timings.job_ms) == (500, 8_500, None)
    assert result.error is not None
    assert (result.error.field, result.error.usage) == ("f", True)
    assert result.memory.peak_mb is None


@pytest.mark.parametrize("state", State)
def test_only_an_incomplete_run_goes_on_under_its_key(state: State) -> None:
    """A resume of a failed run would repeat its failure, and one of a successful run would do nothing."""
    progress = new_walk(DEADLINE)
    event = {"script": "s3://scripts/a.py", "clientToken": "t"}
    progress.job = requested(event, read_settings({"SW_CHECKPOINT_BUCKET": "checkpoints"}), "r").job
    result = result_of(progress, Outcome(state, "d", None))
    assert result.resume_token == ("t" if state is State.INCOMPLETE else None)


def test_the_times_are_the_journal_s() -> None:
    """They run from the start of the JVM to Python, to the session, to the end."""
    python, session = Entry("python_started", 3_000, {}), Entry("session_ready", 4_500, {})
    timings = result_of(ended(python, session), Outcome(State.SUCCESS, "d", None)).timings
    assert (timings.jvm_start_ms, timings.session_ms, timings.job_ms, timings.settle_ms) == (1_000, 1_500, 2_500, 3)
    timings = result_of(ended(python), Outcome(State.SUCCESS, "d", None)).timings
    assert (timings.jvm_start_ms, timings.session_ms, timings.job_ms) == (1_000, None, 4_000)


def test_texts_are_masked() -> None:
    """Secrets are masked in details, error, warnings and reasons."""
    progress = new_walk(DEADLINE)
    progress.redactor = Redactor(("hunter22",))
    progress.warn("w hunter22")
    progress.settled = settled(
        WriteReport("t", "delta", None, Status.UNKNOWN, None, None, None, "r hunter22", "u hunter22", "s3://c/1")
    )
    result = result_of(progress, Outcome(State.UNKNOWN, "d hunter22", Fault("E", "m hunter22", "conf.hunter22")))
    assert len(result.writes) == len(result.warnings) == 1
    assert "hunter22" not in result.model_dump_json()


def test_settings_that_were_ignored_are_told_by_reason() -> None:
    """Each reason gets one line with the keys that it concerns."""
    progress = ended(
        *(Entry("setting_ignored", 1, {"key": key, "why": why}) for key, why in (("a", "x"), ("b", "y"), ("c", "x")))
    )
    warnings = result_of(progress, Outcome(State.SUCCESS, "d", None)).warnings
    assert warnings == ("the script sets a, c, which was ignored: x", "the script sets b, which was ignored: y")


def test_the_versions_are_those_of_the_jars() -> None:
    """The jars on the class path run, whatever version Python packages have."""
    progress = new_walk(DEADLINE)
    progress.settings = read_settings({"SW_CHECKPOINT_BUCKET": "checkpoints"})
    versions = result_of(progress, Outcome(State.SUCCESS, "d", None)).versions
    assert (versions.delta, versions.iceberg) == ("4.4.0", "1.12.0")
