"""The event of an invocation, from the command line."""

from __future__ import annotations

import shlex
import sys
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from handler.input_errors import InputError
from handler.request.identity import is_document, names_its_run
from safewriter.parsing import parsed
from soal.console.problem import Problem

_INLINE: Final = ("{", "[", '"')
_S3: Final = ("s3://", "s3a://")


def read_event(text: str) -> Any:  # noqa: ANN401 - any JSON value may be an event
    """Read EVENT: `-` (stdin), an s3:// script path, inline JSON, or the path of a JSON file."""
    if text.startswith(_S3):
        return text
    if text == "-":
        return _parsed(sys.stdin.read(), "standard input")
    if text.lstrip().startswith(_INLINE):
        return _parsed(text, "EVENT")
    if text.endswith(".py"):
        raise Problem(
            f"EVENT {text!r} is a script, not an event",
            todo=f"run it on this machine: soal local run {shlex.quote(text)}; or upload it, and give s3://…/script.py",
        )
    try:
        return _parsed(Path(text).read_text(encoding="utf-8"), text)
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(
            f"EVENT {text!r}: {error}", todo="give a JSON file, inline JSON, - for standard input, or s3://…/script.py"
        ) from error


def with_token(event: object) -> object:
    """Return a job document with a clientToken. Any other event, such as a queue's, stays unchanged.

    Raises `Problem` for a clientToken that is null: it would keep the token out, and each attempt would write again.
    """
    if isinstance(event, str):
        return {"entryPoint": event, "clientToken": uuid.uuid4().hex}
    if isinstance(event, dict) and event.get("clientToken", "") is None:
        raise Problem("clientToken is null, which names no run", todo="give the run's key, or leave the field out")
    if isinstance(event, dict) and "clientToken" not in event and is_document(event):
        return {**event, "clientToken": uuid.uuid4().hex}
    return event


def check_repeatable(event: object) -> None:
    """Raise `Problem` for an event that names no run: each repetition of it would be a run of its own, and write again.
    Of an event that the handler refuses nothing is said here: nothing repeats it.
    """
    with suppress(InputError):
        if not names_its_run(event):
            raise Problem(
                "the event names no run, so each attempt would be another one, and write again",
                todo="give a job document, which gets a clientToken, or a service's event; or leave --until-done out",
            )


def run_key_of(event: object) -> str | None:
    """Return the run key that the event names, or None."""
    token = event.get("clientToken") if isinstance(event, dict) else None
    return token if isinstance(token, str) else None


def _parsed(text: str, place: str) -> Any:  # noqa: ANN401 - any JSON value may be an event
    try:
        return parsed(text)
    except ValueError as error:
        raise Problem(
            f"{place}: no JSON: {error}", todo="an event is a JSON value; see docs/reference/event"
        ) from error
