"""The journey in an account: bounded waits, the operator's command, and failures shown as claims."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

import pytest

from scripts.demonstration.account import failing, killing
from scripts.demonstration.account.journey import Journey, Said, trusted
from scripts.demonstration.stage import Claims
from soal.console.screen import Screen

if TYPE_CHECKING:
    from pathlib import Path

MADE = {"ScriptBucket": "scripts", "LakeBucket": "lake", "CheckpointBucket": "checkpoints", "FailureQueueUrl": "q"}


@pytest.fixture
def journey(tmp_path: Path) -> Journey:
    console = Screen(file=io.StringIO(), width=120)
    account = MagicMock(folder=tmp_path, aws={"AWS_ENDPOINT_URL": "http://account"}, endpoint="http://account")
    return Journey(console, Claims(console), account, MagicMock(), made=dict(MADE))


def test_an_answer_that_is_no_json_has_no_document_and_no_state() -> None:
    """A claim about it is false, and the journey goes on."""
    said, failed = Said(0, '{"state": "SUCCESS"}', ""), Said(1, "", "soal: no such function")
    assert (said.document, said.state) == ({"state": "SUCCESS"}, "SUCCESS")
    assert (failed.document, failed.state) == (None, None)


def test_what_failed_is_shown_in_its_first_line(journey: Journey) -> None:
    """A reader of the journey sees why a claim does not hold."""
    journey.show(Said(1, "", "soal: no answer\n  To do: try again"))

    assert "soal: no answer\n" in journey.console.file.getvalue()  # type: ignore[attr-defined]


def test_a_wait_ends_at_its_bound(journey: Journey) -> None:
    """What never holds is None, and what holds at once is a time."""
    assert journey.waits("never", lambda: False, 0.0) is None
    assert journey.waits("at once", lambda: True, 0.0) is not None


def test_the_operators_command_sees_the_account_and_nothing_of_the_caller(
    journey: Journey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As somebody has it who has read the stack's outputs."""
    monkeypatch.setenv("AWS_PROFILE", "mine")
    started = MagicMock()
    monkeypatch.setattr(subprocess, "Popen", started)

    journey.start("runs", "list")

    (words,), options = started.call_args
    assert words[0] == sys.executable
    assert words[-2:] == ["runs", "list"]
    assert options["env"]["AWS_ENDPOINT_URL"] == "http://account"
    assert options["env"]["SW_CHECKPOINT_BUCKET"] == "checkpoints"
    assert "AWS_PROFILE" not in options["env"]


def test_a_certificate_is_trusted_only_within_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the caller has set is back afterwards, and what was not set is not."""
    monkeypatch.setenv("SSL_CERT_FILE", "/own.pem")
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)

    with trusted("/account.pem"):
        assert (os.environ["SSL_CERT_FILE"], os.environ["AWS_CA_BUNDLE"]) == ("/account.pem", "/account.pem")

    assert os.environ["SSL_CERT_FILE"] == "/own.pem"
    assert "AWS_CA_BUNDLE" not in os.environ


@pytest.mark.parametrize(
    ("run", "is_dead"),
    [
        ({"life": "dead", "writes": [{"life": "dead"}]}, True),
        ({"life": "dead", "writes": [{"life": "alive"}]}, False),
        ({"life": "alive", "writes": [{"life": "dead"}]}, False),
        ({}, False),
    ],
)
def test_a_killed_job_is_over_when_its_run_and_its_writes_are(
    run: dict[str, object],
    is_dead: bool,  # noqa: FBT001 - a row's field
    journey: Journey,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each has a lease of its own: before the last one is over, `soal recover` settles nothing."""
    monkeypatch.setattr(Journey, "run_of", lambda *_: run)

    assert killing._is_dead(journey, "killed") is is_dead


def test_messages_that_somebody_has_received_wait_still(journey: Journey) -> None:
    """A queue is empty only when both counts are 0."""
    counts = {"ApproximateNumberOfMessages": "1", "ApproximateNumberOfMessagesNotVisible": "2"}
    journey._clients["sqs"] = MagicMock()
    journey._clients["sqs"].get_queue_attributes.return_value = {"Attributes": counts}

    assert failing.waiting(journey, "FailureQueueUrl") == 3
