"""A run and the content of its script: steps are identified by name, and a changed script may mean other rows by it."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from handler.process.child import Stop
from safewriter.objects import StoreError
from safewriter.record.document import Status
from tests.unit.handler.world import COMMITTED, EVENT, UNKNOWN, World

if TYPE_CHECKING:
    from pathlib import Path

    from handler.outcome.result import Result

ROLLED_BACK = replace(COMMITTED, status=Status.ROLLED_BACK)
FIRST, MENDED = b"print(1)", b"print(2)"
LIBRARY = {**EVENT, "pyFiles": ["s3://scripts/lib.py"]}


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.code["job.py"] = FIRST
    return made


def failed(world: World, *reports: object) -> None:
    """Let a first attempt fail with these verdicts."""
    world.end, world.reports = {"exit_code": 1, "signal": None, "stop": None}, reports
    assert world.handle().state != "SUCCESS"
    world.end, world.reports = {"exit_code": 0, "signal": None, "stop": None}, (COMMITTED,)
    world.may_run = False


def is_refused(world: World, result: Result) -> bool:
    if result.error is None or not result.error.usage:
        assert world.may_run
        return False
    assert (result.error.field, world.may_run) == ("clientToken", False)
    return True


def test_a_mended_script_does_not_continue_a_run_with_committed_writes_unasked(world: World) -> None:
    """The refusal names the code that the run had, that which this attempt brings, and the field with which the owner
    permits it; the run stays unchanged.
    """
    failed(world, COMMITTED, ROLLED_BACK)
    before = world.stored("runs/")
    world.code["job.py"] = MENDED
    result = world.handle()
    assert is_refused(world, result)
    assert result.error is not None
    before_it, its_own = (sha256(content).hexdigest()[:12] for content in (FIRST, MENDED))
    told = f"s3://scripts/job.py: SHA-256 {before_it} until now, {its_own} in this attempt"
    assert told in result.error.message
    assert '"acceptChangedScript": true' in result.error.message
    assert world.stored("runs/") == before


def test_by_the_owner_s_word_it_goes_on_and_the_result_says_so(world: World) -> None:
    """Lambda's retry of that event has the permission, too."""
    failed(world, COMMITTED)
    world.code["job.py"] = MENDED
    accepting = {**EVENT, "acceptChangedScript": True}
    result = world.handle(accepting)
    assert (result.state, result.attempt) == ("SUCCESS", 2)
    assert any(warning.startswith("the script was changed: attempt 2 has other code") for warning in result.warnings)
    again = world.handle(accepting)
    assert (again.state, again.attempt, again.warnings) == ("SUCCESS", 3, ())


@pytest.mark.parametrize("following", [FIRST, MENDED, b"print(3)"], ids=["first", "mended", "third"])
@pytest.mark.parametrize("end", [COMMITTED, ROLLED_BACK], ids=["committed", "rolled back"])
def test_the_word_holds_for_the_attempts_that_bring_it(world: World, end: object, following: bytes) -> None:
    """An event without it continues neither script's writes, since some may be the other script's."""
    failed(world, COMMITTED)
    world.code["job.py"] = MENDED
    world.reports = (end,)
    assert world.handle({**EVENT, "acceptChangedScript": True}).attempt == 2
    before, world.may_run, world.code["job.py"] = world.stored("runs/"), False, following
    result = world.handle()
    assert is_refused(world, result)
    assert result.error is not None
    assert "more than one script" in result.error.message
    assert '"acceptChangedScript": true' in result.error.message
    assert world.stored("runs/") == before
    assert world.handle({**EVENT, "acceptChangedScript": True}).attempt == 3


@pytest.mark.parametrize("theirs", ["first", "in between"])
def test_nobody_s_word_lends_rows_of_other_python_files_to_a_job(world: World, theirs: str) -> None:
    """Otherwise any caller could use up a token with rows of other files, restore the code in the record, and let the
    job end as SUCCESS for those rows.
    """
    world.code["theirs.py"] = b"rows = 666"
    ours, other = LIBRARY, {**EVENT, "pyFiles": ["s3://scripts/theirs.py"]}
    word = {"acceptChangedScript": True}
    for event in (other, {**ours, **word}) if theirs == "first" else (ours, {**other, **word}, {**ours, **word}):
        assert world.handle(event).state == "SUCCESS"
    world.may_run = False
    assert is_refused(world, world.handle(ours))


def test_the_function_s_owner_gives_the_word_for_events_without_the_field(world: World) -> None:
    """An event of S3 or SQS is not a job document."""
    failed(world, COMMITTED)
    world.code["job.py"] = MENDED
    assert world.handle(SOAL_ACCEPT_CHANGED_SCRIPT="on").state == "SUCCESS"


def test_the_same_script_needs_no_word(world: World) -> None:
    """This is an ordinary retry."""
    failed(world, COMMITTED)
    result = world.handle()
    assert (result.state, result.warnings) == ("SUCCESS", ())


def test_a_mended_python_file_is_a_mended_script(world: World) -> None:
    """It may hold most of a job's code."""
    world.code["lib.py"] = b"rows = 10"
    assert world.handle(LIBRARY).state == "SUCCESS"
    world.may_run = False
    world.code["lib.py"] = b"rows = 20"
    assert is_refused(world, world.handle(LIBRARY))
    world.code["lib.py"] = b"rows = 10"
    assert world.handle(LIBRARY).state == "SUCCESS"


def test_a_run_that_has_left_nothing_takes_a_mended_script(world: World) -> None:
    """There is no write to skip; the result says that the script was changed."""
    failed(world, ROLLED_BACK)
    world.code["job.py"] = MENDED
    result = world.handle()
    assert (result.state, result.attempt) == ("SUCCESS", 2)
    assert any(warning.startswith("the script was changed") for warning in result.warnings)


@pytest.mark.parametrize(
    "left", [(UNKNOWN,), (ROLLED_BACK, UNKNOWN), StoreError("gone")], ids=["unknown", "one", "all"]
)
def test_a_write_without_a_verdict_may_be_committed(world: World, left: object) -> None:
    """An unknown commit may still exist."""
    world.reports = left
    assert world.handle().state == "UNKNOWN"
    world.reports, world.may_run = (COMMITTED,), False
    world.code["job.py"] = MENDED
    assert is_refused(world, world.handle())


def test_rows_beside_a_write_that_was_rolled_back_stay(world: World) -> None:
    """A changed script would write them again."""
    failed(world, replace(ROLLED_BACK, incomplete="a statement has written past the block"))
    world.code["job.py"] = MENDED
    assert is_refused(world, world.handle())


def test_what_an_earlier_attempt_has_committed_counts(world: World) -> None:
    """Only the last attempt left nothing."""
    failed(world, COMMITTED)
    failed(world, ROLLED_BACK)
    world.code["job.py"] = MENDED
    assert is_refused(world, world.handle())


def test_an_attempt_whose_script_cannot_be_read_is_on_record(world: World) -> None:
    """It has run no script, so the run keeps the previous attempt's."""
    failed(world, COMMITTED)
    world.code["job.py"] = ClientError({"Error": {"Code": "NoSuchKey"}}, "GetObject")
    result = world.handle()
    assert (result.state, result.attempt) == ("FAILED", 2)
    assert "does not exist" in result.state_details
    world.code["job.py"] = MENDED
    assert is_refused(world, world.handle())
    world.code["job.py"] = FIRST
    assert world.handle().state == "SUCCESS"


def test_a_run_that_the_function_continues_itself_keeps_the_word(world: World) -> None:
    """All of its attempts have the same event."""
    failed(world, COMMITTED)
    world.code["job.py"] = MENDED
    world.end = {"exit_code": None, "signal": 9, "stop": Stop.KILLED}
    world.reports = (replace(COMMITTED, run_id="run-1"),)
    assert world.handle({**EVENT, "acceptChangedScript": True}, SOAL_CONTINUE_MAX="3").state == "INCOMPLETE"
    assert isinstance(world.invoked, list)
    world.end = {"exit_code": 0, "signal": None, "stop": None}
    assert world.handle(world.invoked[-1][1]).state == "SUCCESS"


def test_an_attempt_at_the_deadline_continues_with_the_script_that_it_had(world: World) -> None:
    """This includes a run that the function continues itself."""
    world.end = {"exit_code": None, "signal": 9, "stop": Stop.KILLED}
    world.reports = (replace(COMMITTED, run_id="run-1"),)
    result = world.handle(SOAL_CONTINUE_MAX="3")
    assert (result.state, result.continued_by) == ("INCOMPLETE", "request-2")
    assert isinstance(world.invoked, list)
    world.code["job.py"] = MENDED
    following = world.handle(world.invoked[-1][1])
    assert following.error is not None
    assert "acceptChangedScript" in following.error.message


ZONE = {"spark.sql.session.timeZone": "Europe/Vienna"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {"conf": ZONE}),
        ({"conf": ZONE}, {}),
        ({"conf": ZONE}, {"conf": {"spark.sql.session.timeZone": "UTC"}}),
        ({"conf": ZONE}, {"sparkSubmitParameters": "--conf spark.sql.session.timeZone=UTC"}),
        ({}, {"pyFiles": ["s3://scripts/lib.py"]}),
    ],
    ids=["more", "less", "another value", "in parameters", "a Python file"],
)
def test_other_settings_do_not_continue_a_run_with_committed_writes(
    world: World, first: dict[str, object], second: dict[str, object]
) -> None:
    """Otherwise any caller could use up the writes of a token with rows of another time zone, and the job would skip
    them. The run stays unchanged.
    """
    assert world.handle({**EVENT, **first}).state == "SUCCESS"
    before, world.may_run = world.stored("runs/"), False
    assert is_refused(world, world.handle({**EVENT, **second}))
    assert world.stored("runs/") == before
    assert world.handle({**EVENT, **first}).attempt == 2


def test_the_owner_s_word_on_scripts_is_none_on_settings(world: World) -> None:
    """The permission only concerns a changed script."""
    assert world.handle().state == "SUCCESS"
    world.may_run = False
    assert is_refused(world, world.handle({**EVENT, "conf": ZONE}, SOAL_ACCEPT_CHANGED_SCRIPT="on"))


def test_memory_and_the_owner_s_own_settings_may_change(world: World) -> None:
    """A run killed for memory continues with more partitions, and the owner is responsible for SOAL_CONF."""
    failed(world, COMMITTED)
    more = {"spark.sql.shuffle.partitions": "64", "spark.driver.memory": "2g"}
    result = world.handle({**EVENT, "conf": more}, SOAL_CONF=json.dumps(ZONE))
    assert (result.state, result.attempt) == ("SUCCESS", 2)


def test_a_run_that_has_left_nothing_takes_other_settings(world: World) -> None:
    """There is no write to skip."""
    failed(world, ROLLED_BACK)
    assert world.handle({**EVENT, "conf": ZONE}).state == "SUCCESS"


def test_a_run_of_a_version_that_kept_no_settings_is_continued(world: World) -> None:
    """Its record lacks them, and an upgrade must not make its retry fail."""
    failed(world, COMMITTED)
    (key,) = (listed.key for listed in world.store.list("runs/"))
    stored = world.store.get(key)
    assert stored is not None
    earlier = {name: value for name, value in json.loads(stored.body).items() if name not in ("settings", "event")}
    world.store.put(key, json.dumps(earlier).encode())
    assert world.handle({**EVENT, "conf": ZONE}).state == "SUCCESS"
    assert is_refused(world, world.handle()) is True


OWN = {"SOAL_ENTRY_POINT": "s3://scripts/job.py"}


def of_rule(**fields: object) -> dict[str, object]:
    return {"detail-type": "Order", "source": "shop", "id": "E-1", "detail": {"rows": [1, 2, 3]}, **fields}


def of_queue(**fields: object) -> dict[str, object]:
    record = {"eventSource": "aws:sqs", "messageId": "m-1", "body": "[1, 2, 3]", "receiptHandle": "r-1", **fields}
    return {"Records": [record]}


def continued(event: object, token: str) -> dict[str, object]:
    return {"continuation": {"count": 1, "token": token, "event": event}}


@pytest.mark.parametrize("left", [COMMITTED, ROLLED_BACK], ids=["committed", "rolled back"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (of_rule(detail={"rows": [666]}), of_rule()),
        (of_queue(body="[666]"), of_queue()),
        (continued({"rows": []}, "nightly-1"), {"clientToken": "nightly-1"}),
        ({"clientToken": "nightly-1"}, continued({"rows": []}, "nightly-1")),
        (continued({"rows": []}, "nightly-1"), continued({"rows": [1]}, "nightly-1")),
    ],
    ids=["rule", "queue", "no event", "an event", "continuation"],
)
def test_another_event_is_no_attempt_at_a_run(world: World, left: object, first: object, second: object) -> None:
    """Its rows would be skipped for the first event's, with a result of SUCCESS. The run stays unchanged."""
    world.end, world.reports = {"exit_code": 1, "signal": None, "stop": None}, (left,)
    assert world.handle(first, **OWN).error is not None
    before, world.may_run = world.stored("runs/"), False
    error = world.handle(second, **OWN).error
    assert error is not None
    assert (error.usage, error.field, world.may_run) == (True, "event", False)
    assert world.stored("runs/") == before
    assert world.handle(first, **OWN).attempt == 2


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (of_rule(), of_rule(**{"replay-name": "of-monday"})),
        (of_queue(), of_queue(receiptHandle="r-2", attributes={"ApproximateReceiveCount": "2"})),
        (of_queue(), {"Records": [{"eventSource": "aws:sqs", "messageId": "m-1", "body": "[1, 2, 3]"}]}),
        (of_rule(detail={"a": 1, "b": 2}), of_rule(detail={"b": 2, "a": 1})),
    ],
    ids=["replay", "queue", "redrive of a message", "order of fields"],
)
def test_what_a_service_adds_to_a_delivery_makes_no_other_event(world: World, first: object, again: object) -> None:
    """A redelivery, a replay and a redrive are attempts of the same run."""
    assert world.handle(first, **OWN).state == "SUCCESS"
    result = world.handle(again, **OWN)
    assert (result.state, result.attempt) == ("SUCCESS", 2)
    (record,) = world.stored("runs/")
    assert world.handle(continued(again, record["runKey"]), **OWN).attempt == 3


def test_a_run_of_a_version_that_kept_no_event_is_continued(world: World) -> None:
    """Its record lacks the event; from then on it has it."""
    assert world.handle(of_rule(), **OWN).state == "SUCCESS"
    (key,) = (listed.key for listed in world.store.list("runs/"))
    (record,) = world.stored("runs/")
    del record["event"]
    world.store.put(key, json.dumps(record).encode())
    assert world.handle(of_rule(), **OWN).attempt == 2
    error = world.handle(of_rule(detail={}), **OWN).error
    assert error is not None
    assert error.field == "event"
