"""The command line reads an invocation's event from path, JSON, stdin or script, and gives it a token."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from handler.request.identity import DISTINCTIVE, names_its_run
from soal.console.problem import Problem
from soal.invocation.event import check_repeatable, read_event, with_token

if TYPE_CHECKING:
    from pathlib import Path


def test_an_event_is_a_path_inline_json_stdin_or_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All four forms of EVENT give the event."""
    file = tmp_path / "event.json"
    file.write_text('{"a": 1}', encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"a": 2}'))
    assert read_event(str(file)) == {"a": 1}
    assert read_event("-") == {"a": 2}
    assert read_event(' {"a": 3}') == {"a": 3}
    assert read_event('"s3://b/j.py"') == "s3://b/j.py"
    assert read_event("s3://b/j.py") == "s3://b/j.py"


@pytest.mark.parametrize("text", ["{", "no/such/file.json", "/", ""])
def test_what_is_no_event_is_a_usage_error(text: str) -> None:
    """Invalid JSON and missing files exit with 2, and the problem names the cause."""
    with pytest.raises(Problem) as caught:
        read_event(text)
    assert caught.value.exit_code == 2
    assert caught.value.todo


def test_a_script_of_this_machine_is_not_an_event(tmp_path: Path) -> None:
    """The problem says how to run it, whether the file exists or not."""
    script = tmp_path / "my job.py"
    with pytest.raises(Problem, match="is a script, not an event") as caught:
        read_event(str(script))
    assert f"soal local run '{script}'" in caught.value.todo
    assert "s3://" in caught.value.todo


def test_a_job_without_a_token_gets_one() -> None:
    """A job without a token gets one, so that all attempts are the same run; other events are unchanged."""
    named = with_token("s3://b/a.py")
    assert isinstance(named, dict)
    assert (named["entryPoint"], len(named["clientToken"])) == ("s3://b/a.py", 32)
    assert with_token({"script": "s3://b/a.py"}) != {"script": "s3://b/a.py"}
    assert with_token({"script": "s3://b/a.py", "clientToken": "t"}) == {"script": "s3://b/a.py", "clientToken": "t"}
    assert with_token({"Records": []}) == {"Records": []}


@pytest.mark.parametrize("field", sorted(DISTINCTIVE - {"clientToken"}))
def test_whatever_the_handler_takes_for_a_job_gets_a_token(field: str) -> None:
    """With a script of the function's own a job names none: its attempts would be runs of their own."""
    named = with_token({field: []})
    assert isinstance(named, dict)
    assert len(named["clientToken"]) == 32
    assert names_its_run(named)


def test_an_event_without_a_run_is_not_repeated() -> None:
    """Only Lambda's own request would name it. What the handler refuses, it says itself."""
    message = {"Records": [{"eventSource": "aws:sqs", "messageId": "m", "body": "{}"}]}
    continued = {"continuation": {"count": 1, "token": "t", "event": {"x": 1}}}
    refused: tuple[object, ...] = ({"Records": []}, {"requestContext": {"http": {}}})
    for event in (message, continued, {"clientToken": "t"}, *refused):
        check_repeatable(event)
    anonymous: list[object] = [{"x": 1}, {"entryPoint": "s3://b/j.py"}, {}, [], "s3://b/j.py"]
    for event in anonymous:
        with pytest.raises(Problem, match="names no run") as caught:
            check_repeatable(event)
        assert caught.value.exit_code == 2


def test_a_token_that_is_null_is_refused() -> None:
    """Nothing would repeat the run's key, so each attempt of --until-done would be a run of its own."""
    with pytest.raises(Problem, match="clientToken is null") as caught:
        with_token({"entryPoint": "s3://b/a.py", "clientToken": None})
    assert caught.value.exit_code == 2
