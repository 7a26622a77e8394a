"""The handler makes an event a job: its run key from token, trigger or request, its fingerprint, its permissions."""

from __future__ import annotations

from typing import Any

import pytest

from handler.input_errors import InputError
from handler.request.job import EventForm, Job, requested
from handler.settings import read_settings
from tests.support import service_events

BUCKET = {"SW_CHECKPOINT_BUCKET": "checkpoints"}
PLAIN = read_settings(BUCKET)
OURS = read_settings({**BUCKET, "SOAL_ENTRY_POINT": "s3://scripts/e.py"})
THEIRS = read_settings({**BUCKET, "SCRIPT_BUCKET": "scripts", "SPARK_SCRIPT": "e.py"})
SQS: dict[str, Any] = {
    "Records": [{"eventSource": "aws:sqs", "messageId": "m-1", "body": "x", "attributes": {"n": "1"}}]
}


def job(event: object, settings: Any = PLAIN) -> Job:
    return requested(event, settings, "request-1").job


def test_the_run_key_is_the_caller_s_else_the_event_s_else_the_request_s() -> None:
    """A caller's token outranks the event's own identity; without both, each request is a separate run."""
    assert job({"script": "s3://abc/d.py", "clientToken": "t"}).run_key == "t"
    assert job(SQS, OURS).run_key.startswith("sqs-m-1-")
    assert job("s3://abc/d.py").run_key == "request-1"


def test_the_fingerprint_is_of_script_and_arguments() -> None:
    """Settings, names and tokens may change between two attempts."""
    base = {"script": "s3://abc/d.py", "entryPointArguments": ["a", "b"]}
    same = job(base).fingerprint
    assert job({**base, "conf": {"spark.task.maxFailures": "1"}, "name": "n", "clientToken": "t"}).fingerprint == same
    assert job({**base, "entryPointArguments": ["ab"]}).fingerprint != same
    assert job({**base, "script": "s3://abc/e.py"}).fingerprint != same


@pytest.mark.parametrize("form", ["flat", "nested"])
def test_another_script_continues_a_run_by_the_owner_s_word_alone(form: str) -> None:
    """The permission is in the event, in both forms, or in the function's settings; only true grants it."""
    script = {"entryPoint": "s3://abc/d.py"}
    base = script if form == "flat" else {"jobDriver": {"sparkSubmit": script}}
    assert not job(base).accept_changed_script
    assert job({**base, "acceptChangedScript": True}).accept_changed_script
    assert not job({**base, "acceptChangedScript": False}).accept_changed_script
    assert job(base, read_settings({**BUCKET, "SOAL_ACCEPT_CHANGED_SCRIPT": "on"})).accept_changed_script
    for word in ("true", "yes", 1, None):
        with pytest.raises(InputError, match="acceptChangedScript: must be true or false, not"):
            job({**base, "acceptChangedScript": word})
    with pytest.raises(InputError, match="SOAL_ACCEPT_CHANGED_SCRIPT"):
        read_settings({**BUCKET, "SOAL_ACCEPT_CHANGED_SCRIPT": "true"})


def test_the_function_s_own_settings_lie_below_the_job_s() -> None:
    """A job has the owner's settings for all jobs, and its own."""
    own = read_settings({**BUCKET, "SOAL_CONF": '{"spark.app.name": "all", "spark.hadoop.fs.s3a.retry.limit": "5"}'})
    conf = job({"script": "s3://abc/d.py", "conf": {"spark.sql.ansi.enabled": "false"}}, own).conf
    assert conf == {
        "spark.app.name": "all",
        "spark.hadoop.fs.s3a.retry.limit": "5",
        "spark.sql.ansi.enabled": "false",
    }


BATCH = service_events.msk(p0=[15, 16])


@pytest.mark.parametrize(
    ("event", "again"),
    [
        (SQS, {"Records": [{**SQS["Records"][0], "attributes": {"n": "2"}}]}),
        (BATCH, {**BATCH, "bootstrapServers": "b-1:9092"}),
    ],
    ids=["SQS", "Kafka"],
)
def test_a_redelivered_message_is_the_same_run(event: dict[str, Any], again: dict[str, Any]) -> None:
    """The count of a queue, or a cluster's brokers, change, but not run key, fingerprint and the event's hash."""
    first, second = requested(event, OURS, "request-1").job, requested(again, OURS, "request-2").job
    assert (first.run_key, first.fingerprint, first.event) == (second.run_key, second.fingerprint, second.event)


def test_how_the_event_reaches_the_script() -> None:
    """As a file; as an argument if the predecessor's variables name the script; not at all for a job document."""
    ours, theirs = job(SQS, OURS).trigger_event, job(SQS, THEIRS).trigger_event
    assert ours is not None
    assert theirs is not None
    assert (ours.form, theirs.form) == (EventForm.FILE, EventForm.ARGUMENT)
    assert '"messageId":"m-1"' in ours.text
    assert job("s3://scripts/d.py", THEIRS).trigger_event is None


def test_an_event_too_long_for_an_argument_is_refused_with_the_remedy() -> None:
    """A file could hold it."""
    with pytest.raises(InputError, match="SOAL_ENTRY_POINT"):
        job({"text": "x" * 130_000}, THEIRS)
    assert job({"text": "x" * 130_000}, OURS).trigger_event is not None


def test_one_event_is_a_run_of_each_function_that_gets_it() -> None:
    """Two functions may share a checkpoint bucket; a caller's own key stays unchanged."""
    ours, theirs = (
        read_settings({**BUCKET, "SOAL_ENTRY_POINT": "s3://abc/e.py", "AWS_LAMBDA_FUNCTION_NAME": name})
        for name in ("ours", "theirs")
    )
    assert job(SQS, ours).run_key == job(SQS, ours).run_key != job(SQS, theirs).run_key
    event = {"script": "s3://abc/d.py", "clientToken": "t"}
    assert job(event, ours).run_key == job(event, theirs).run_key
