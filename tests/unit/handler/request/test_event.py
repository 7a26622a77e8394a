"""The handler parses and limits a job's event: script, arguments, Python files, entry point, EMR Serverless form."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.input_errors import InputError
from handler.request.continuation import unwrapped
from handler.request.event import parse_event
from handler.settings import HandlerSettings, read_settings
from safewriter.objects import Location

PLAIN = read_settings({"SW_CHECKPOINT_BUCKET": "checkpoints"})
WITH_SCRIPT = read_settings({"SW_CHECKPOINT_BUCKET": "checkpoints", "SOAL_ENTRY_POINT": "s3://scripts/on_event.py"})
SCRIPT = "s3://scripts/job.py"
FULL = {
    "entryPoint": SCRIPT,
    "entryPointArguments": ["--day", "2026-11-20"],
    "conf": {"spark.sql.shuffle.partitions": "2"},
    "pyFiles": ["s3://library/common.zip"],
    "clientToken": "nightly-2026-11-20",
    "name": "nightly",
    "tags": {"team": "search"},
}


def test_a_whole_job_document() -> None:
    """Every field of the flat form is read."""
    request = parse_event(FULL, PLAIN)
    assert request.entry_point == Location("scripts", "job.py")
    assert request.arguments == ("--day", "2026-11-20")
    assert request.conf == {"spark.sql.shuffle.partitions": "2"}
    assert request.py_files == (Location("library", "common.zip"),)
    assert (request.client_token, request.name, request.tags) == ("nightly-2026-11-20", "nightly", {"team": "search"})
    assert request.trigger is None


def test_the_cloud_s_form() -> None:
    """A request for EMR Serverless runs unchanged; a warning lists the fields without a meaning here."""
    request = parse_event(
        {
            "applicationId": "00f1",
            "executionRoleArn": "arn:aws:iam::1:role/r",
            "clientToken": "t",
            "name": "nightly",
            "jobDriver": {
                "sparkSubmit": {
                    "entryPoint": SCRIPT,
                    "entryPointArguments": ["a"],
                    "sparkSubmitParameters": "--conf spark.executor.cores=4 --executor-memory 4g",
                }
            },
        },
        PLAIN,
    )
    assert request.arguments == ("a",)
    assert request.conf == {"spark.executor.cores": "4", "spark.executor.memory": "4g"}
    assert len(request.warnings) == 2


@pytest.mark.parametrize("event", [SCRIPT, {"script": SCRIPT}, {"entryPoint": SCRIPT}])
def test_three_ways_to_name_a_script(event: Any) -> None:
    """The path alone, the alias and the field start the same job."""
    assert parse_event(event, PLAIN).entry_point == Location("scripts", "job.py")


@pytest.mark.parametrize(
    ("event", "field"),
    [
        ("s3://scripts/json.py", "entryPoint"),
        ({"script": "s3://scripts/jobs/safewriter.py"}, "script"),
        ({"jobDriver": {"sparkSubmit": {"entryPoint": "s3://scripts/py4j.py"}}}, "jobDriver.sparkSubmit.entryPoint"),
        ({"script": SCRIPT, "pyFiles": ["s3://scripts/lib/ok.py", "s3://scripts/lib/typing.py"]}, "pyFiles[1]"),
        ({"script": SCRIPT, "sparkSubmitParameters": "--py-files s3://scripts/boto3.py"}, "sparkSubmitParameters"),
    ],
)
def test_a_file_that_would_hide_what_the_job_rests_on_is_refused(event: object, field: str) -> None:
    """It is refused by name before anything starts, with the remedy."""
    with pytest.raises(InputError, match=r"would hide .*; rename the file, for example to my_\w+\.py") as caught:
        parse_event(event, PLAIN)
    assert caught.value.field == field


def test_names_of_ours_are_the_job_s() -> None:
    """The job's own `handler`, `scripts` and `infra` are files like any other."""
    request = parse_event(
        {"script": "s3://scripts/scripts.py", "pyFiles": ["s3://scripts/handler.py", "s3://scripts/infra.py"]}, PLAIN
    )
    assert [str(location) for location in request.py_files] == ["s3://scripts/handler.py", "s3://scripts/infra.py"]


def test_code_lies_where_the_function_keeps_scripts() -> None:
    """A caller cannot run code from elsewhere, even if the role can read it; without SCRIPT_BUCKET only the role
    decides.
    """
    bound = read_settings({"SW_CHECKPOINT_BUCKET": "checkpoints", "SCRIPT_BUCKET": "scripts/prod"})
    inside = {"script": "s3a://scripts/prod/job.py", "pyFiles": ["s3://scripts/prod/lib/a.zip"]}
    assert parse_event(inside, bound).entry_point == Location("scripts", "prod/job.py")
    for event, field in (
        ("s3://scripts/job.py", "entryPoint"),
        ("s3://scripts/prod-2/job.py", "entryPoint"),
        ("s3://lake/prod/job.py", "entryPoint"),
        ({**inside, "pyFiles": ["s3://lake/a.zip"]}, "pyFiles"),
        ({**inside, "sparkSubmitParameters": "--py-files s3://lake/b.zip"}, "pyFiles"),
        ({"jobDriver": {"sparkSubmit": {"entryPoint": "s3://lake/job.py"}}}, "jobDriver.sparkSubmit.entryPoint"),
    ):
        with pytest.raises(InputError, match="is not below s3://scripts/prod") as caught:
            parse_event(event, bound)
        assert caught.value.field == field
        parse_event(event, PLAIN)


def test_the_function_s_own_script_may_lie_anywhere() -> None:
    """The function's owner has named it."""
    own = read_settings(
        {"SW_CHECKPOINT_BUCKET": "c-1", "SCRIPT_BUCKET": "scripts", "SOAL_ENTRY_POINT": "s3://other/on_event.py"}
    )
    assert parse_event({"entryPointArguments": ["a"]}, own).entry_point == Location("other", "on_event.py")


def test_an_argument_may_have_several_lines() -> None:
    """A query or a JSON document is text in any layout."""
    text = "SELECT *\n\tFROM t\r\n-- 日本"
    assert parse_event({"script": SCRIPT, "entryPointArguments": [text]}, PLAIN).arguments == (text,)


@pytest.mark.parametrize(
    "document", [FULL, {"jobDriver": {"sparkSubmit": {"entryPoint": SCRIPT}}}, {"entryPointArguments": []}]
)
def test_a_token_that_is_null_is_refused(document: dict[str, Any]) -> None:
    """The stack's state machine takes an event's token over its own, and would start another run with each attempt."""
    with pytest.raises(InputError, match="clientToken: is null, which names no run; give"):
        parse_event({**document, "clientToken": None}, WITH_SCRIPT)
    body = json.dumps({**document, "clientToken": None})
    with pytest.raises(InputError, match=r"body\.clientToken: is null"):
        parse_event({"Records": [{"eventSource": "aws:sqs", "messageId": "m-1", "body": body}]}, WITH_SCRIPT)


def test_the_document_wins_over_the_environment() -> None:
    """A function with its own script still runs the one that an event names."""
    assert parse_event({"entryPoint": SCRIPT}, WITH_SCRIPT).entry_point == Location("scripts", "job.py")


def test_a_document_without_a_script_takes_the_environment_s() -> None:
    """Arguments for the function's own script are a job document, too."""
    request = parse_event({"entryPointArguments": ["a"]}, WITH_SCRIPT)
    assert (request.entry_point.key, request.arguments, request.trigger) == ("on_event.py", ("a",), None)


@pytest.mark.parametrize("event", [{"day": "2026-11-20"}, {"name": "x", "conf": 3}])
def test_any_other_object_goes_to_the_function_s_script(event: dict[str, Any]) -> None:
    """The script receives it unchanged, and a warning says that a repeated one writes again."""
    request = parse_event(event, WITH_SCRIPT)
    assert request.trigger is not None
    assert (request.trigger.event, request.event_key) == (event, None)
    assert "writes again" in request.warnings[0]
    assert parse_event(queued("text"), WITH_SCRIPT).warnings == ()


@pytest.mark.parametrize("settings", [PLAIN, WITH_SCRIPT], ids=["no script", "a script"])
def test_an_empty_event_starts_nothing(settings: HandlerSettings) -> None:
    """A console's button sends one; whoever means the function's own script says so."""
    with pytest.raises(InputError, match="starts nothing") as caught:
        parse_event({}, settings)
    assert caught.value.field == "entryPoint"
    assert parse_event({"entryPointArguments": []}, WITH_SCRIPT).entry_point.key == "on_event.py"


def test_a_schedule_names_its_run_by_its_time() -> None:
    """The time that EventBridge Scheduler writes into its input has colons."""
    text = '{"entryPoint": "s3://scripts/job.py", "clientToken": "nightly-<aws.scheduler.scheduled-time>"}'
    event = json.loads(text.replace("<aws.scheduler.scheduled-time>", "2026-11-20T02:00:00Z"))
    assert parse_event(event, PLAIN).client_token == "nightly-2026-11-20T02:00:00Z"


def test_a_misspelt_document_is_not_taken_for_another_event() -> None:
    """The error points out a field that differs only in case or dashes."""
    for name in ("entrypoint", "EntryPoint", "entry_point", "client-token"):
        with pytest.raises(InputError, match="did you mean"):
            parse_event({name: "x"}, WITH_SCRIPT)


def test_a_message_with_a_job_is_that_job() -> None:
    """It runs under its own token, or else under the message's id."""
    record = {"eventSource": "aws:sqs", "messageId": "m-1", "body": json.dumps({"script": SCRIPT})}
    request = parse_event({"Records": [record]}, PLAIN)
    assert (request.entry_point.key, request.client_token, request.trigger) == ("job.py", None, None)
    assert str(request.event_key).startswith("sqs-m-1-")
    record["body"] = json.dumps({**FULL})
    assert parse_event({"Records": [record]}, PLAIN).client_token == "nightly-2026-11-20"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters()),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from([*FULL, "Records", "jobDriver", "source", "detail-type"]) | st.text(), inner
            )
        ),
        max_leaves=12,
    )
)
def test_no_event_is_anything_but_a_request_or_a_usage_error(event: object) -> None:
    """The parser raises no other error for any event, and its message is one line."""
    for settings in (PLAIN, WITH_SCRIPT):
        _check(event, settings)


def _check(event: object, settings: HandlerSettings) -> None:
    with suppress(InputError):
        parse_event(event, settings)
        return
    with pytest.raises(InputError) as caught:
        parse_event(event, settings)
    assert caught.value.field
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"entryPointArguments": ["\u00fc" * 40_000]}, "entryPointArguments[0]"),
        ({"pyFiles": ["s3://lib/a\nb.zip"]}, "pyFiles[0]"),
        ({"pyFiles": [f"s3://lib/{n}.zip" for n in range(51)]}, "pyFiles"),
        ({"pyFiles": ["s3://lib/job.py"]}, "pyFiles"),
        ({"pyFiles": ["s3://lib/a-1-py3-none-any.whl", "s3://lib/a-1-py3-none-any.whl.zip"]}, "pyFiles"),
        ({"pyFiles": ["s3://lib/numpy-2.4.6-cp313-cp313-manylinux_2_27_x86_64.whl"]}, "pyFiles[0]"),
        ({"pyFiles": ["s3://lib/numpy-2.4.6-cp313-cp313-manylinux_2_27_x86_64.WHL"]}, "pyFiles[0]"),
        ({"pyFiles": ["s3://lib/json.PY"]}, "pyFiles[0]"),
        ({"pyFiles": ["s3://lib/a.py", "s3://lib/a.PY"]}, "pyFiles"),
    ],
)
def test_arguments_and_python_files_have_bounds(more: dict[str, Any], field: str) -> None:
    """Arguments are limited in bytes; files in number, to printable names, and to names other than the script's."""
    with pytest.raises(InputError) as caught:
        parse_event({"script": SCRIPT, **more}, PLAIN)
    assert caught.value.field == field


def test_a_tag_s_key_is_checked_as_its_value_is() -> None:
    """A reference in it is refused."""
    with pytest.raises(InputError, match="holds"):
        parse_event({"script": SCRIPT, "tags": {"${env.HOME}": "x"}}, PLAIN)


def test_files_of_both_ways_share_one_bound() -> None:
    """`--py-files` cannot bypass the limit of `pyFiles`."""
    event = {
        "script": SCRIPT,
        "pyFiles": ["s3://scripts/one.py"],
        "sparkSubmitParameters": "--py-files " + ",".join(f"s3://scripts/m{number}.py" for number in range(50)),
    }
    with pytest.raises(InputError, match="51 files"):
        parse_event(event, PLAIN)


def queued(body: object) -> dict[str, Any]:
    text = body if isinstance(body, str) else json.dumps(body)
    return {"Records": [{"eventSource": "aws:sqs", "messageId": "m", "body": text}]}


@pytest.mark.parametrize("name", ["entrypoint", "entry_point", "Script", "job-driver", "client_token"])
def test_a_misspelt_job_in_a_message_does_not_run_the_function_s_own_script(name: str) -> None:
    """As outside a message, the error names the field and the right name."""
    with pytest.raises(InputError, match="did you mean") as caught:
        parse_event(queued({name: "s3://abc/d.py"}), WITH_SCRIPT)
    assert caught.value.field == f"Records[0].body.{name}"


def test_a_job_behind_a_byte_order_mark_is_that_job() -> None:
    """Some editors write one, and it is not part of the text."""
    request = parse_event(queued("\ufeff" + json.dumps({"entryPoint": "s3://abc/d.py"})), WITH_SCRIPT)
    assert (str(request.entry_point), request.trigger) == ("s3://abc/d.py", None)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({f"f{n}": 1 for n in range(1_001)}, "event"),
        ({"conf": {f"k{n}": 1 for n in range(1_001)}}, "conf"),
        ({"tags": {f"k{n}": 1 for n in range(1_001)}}, "tags"),
        ({"coordination": {f"k{n}": 1 for n in range(1_001)}}, "coordination"),
        ({"pyFiles": [1] * 1_001}, "pyFiles"),
        ({"entryPointArguments": ["a"] * 1_001}, "entryPointArguments"),
        (
            {"jobDriver": {"sparkSubmit": {"entryPointArguments": [1] * 1_001}}},
            "jobDriver.sparkSubmit.entryPointArguments",
        ),
        ({"jobDriver": {"sparkSubmit": {f"f{n}": 1 for n in range(1_001)}}}, "jobDriver.sparkSubmit"),
        ({"jobDriver": {f"f{n}": 1 for n in range(1_001)}}, "jobDriver"),
    ],
)
def test_a_document_with_thousands_of_entries_is_refused_before_each_is_looked_at(
    fields: dict[str, Any], field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error for each entry would use up the function's time and memory."""

    def look(*_: object, **__: object) -> None:
        raise AssertionError(fields)

    for model in ("FlatDocument", "NestedDocument"):
        monkeypatch.setattr(f"handler.request.event.{model}.model_validate", look)
    for event, prefix in (
        ({"script": "s3://abc/d.py", **fields}, ""),
        (queued({"script": "s3://abc/d.py", **fields}), "Records[0].body"),
    ):
        with pytest.raises(InputError, match="entries; 1000 are allowed") as caught:
            parse_event(event, WITH_SCRIPT)
        assert caught.value.field == (f"{prefix}.{field}".strip(".") if field != "event" else prefix or "event")


def test_a_service_s_event_has_any_number_of_entries() -> None:
    """Its script gets it unchanged, also in a continuation."""
    event = {"rows": list(range(5_000)), **{f"f{n}": 1 for n in range(5_000)}}
    assert parse_event(event, WITH_SCRIPT).trigger is not None
    continued = {"continuation": {"count": 1, "token": "t", "event": event}}
    assert unwrapped(continued)[0] == event
    with pytest.raises(InputError, match="entries; 1000 are allowed"):
        unwrapped({"continuation": event})


def test_the_cloud_s_defaults_are_settings_and_the_rest_of_its_overrides_is_a_warning() -> None:
    """A request with a log's place and Spark's defaults is sent as it is; the submission's own settings go before."""
    defaults = {"spark.sql.shuffle.partitions": "8", "spark.executor.cores": "4"}
    overrides = {
        "applicationConfiguration": [{"classification": "spark-defaults", "properties": defaults}],
        "monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": "s3://logs/"}},
    }
    submit = {"entryPoint": SCRIPT, "sparkSubmitParameters": "--conf spark.sql.shuffle.partitions=2"}
    ignored = {"executionTimeoutMinutes": 60, "mode": "BATCH", "retryPolicy": {"maxAttempts": 3}}
    request = parse_event({"jobDriver": {"sparkSubmit": submit}, "configurationOverrides": overrides, **ignored}, PLAIN)
    assert request.conf == {"spark.sql.shuffle.partitions": "2", "spark.executor.cores": "4"}
    assert [warning.partition(" ")[0] for warning in request.warnings] == [
        *ignored,
        "configurationOverrides.monitoringConfiguration",
    ]


def test_all_that_is_wrong_with_an_event_is_told_at_once() -> None:
    """Nobody should learn it by one invocation for each word."""
    submit = {
        "entryPoint": SCRIPT,
        "sparkSubmitParameters": "--conf spark.jars=a.jar --conf spark.sql.extensions=x --conf spark.master=yarn",
    }
    endpoint = {"spark.hadoop.fs.s3a.endpoint": "https://e"}
    overrides = {"applicationConfiguration": [{"classification": "spark-defaults", "properties": endpoint}]}
    with pytest.raises(InputError) as caught:
        parse_event({"jobDriver": {"sparkSubmit": submit}, "configurationOverrides": overrides}, PLAIN)
    told = str(caught.value)
    names = (
        "spark.jars",
        "spark.sql.extensions",
        "spark.master",
        "configurationOverrides.spark.hadoop.fs.s3a.endpoint",
    )
    assert [name for name in names if name not in told] == []
    with pytest.raises(InputError, match=r"--jars.*; .*--class"):
        parse_event({"entryPoint": SCRIPT, "sparkSubmitParameters": "--jars a.jar --class A"}, PLAIN)
    with pytest.raises(InputError, match=r"tags: .*; nmae: "):
        parse_event({"entryPoint": SCRIPT, "nmae": "n", "tags": 1}, PLAIN)
    many = {f"spark.no.{number}": "1" for number in range(100)}
    with pytest.raises(InputError, match="and 90 more"):
        parse_event({"entryPoint": SCRIPT, "conf": many}, PLAIN)
