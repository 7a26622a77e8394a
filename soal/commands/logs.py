"""`soal logs`: print the CloudWatch log of a deployed function, of one run or of all runs."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from safewriter.deadline import epoch_ms
from safewriter.parsing import parsed
from soal.console.document import document_of
from soal.console.output import Output
from soal.console.problem import Problem
from soal.console.view import View
from soal.options import EndpointUrl, FunctionNameIfGiven, Json
from soal.remote.aws import aws_client
from soal.remote.failure import AWS_ERRORS, failed

if TYPE_CHECKING:
    from collections.abc import Iterator

_LATE_MS: Final = 10_000
"""CloudWatch may deliver a line seconds after newer ones, so each read starts a little earlier."""
_SEEN_MAX: Final = 50_000
_POLL_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line. `level` is empty for lines that the function did not log, such as Lambda's REPORT. `source` is "job"
    for the job's output.
    """

    at_ms: int
    level: str
    source: str
    text: str
    stream: str

    @property
    def time(self) -> str:
        """The time of day in UTC."""
        return datetime.fromtimestamp(self.at_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]


@dataclass(slots=True)
class LogReader:
    """Reads a log group from a start time; returns each line once. `words`: only lines that contain this text."""

    client: Any
    group: str
    from_ms: int
    words: str | None = None
    _seen: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def look(self) -> Iterator[LogLine]:
        """Yield the lines added since the last call, in CloudWatch's order."""
        newest = self.from_ms
        pages = self.client.get_paginator("filter_log_events").paginate(
            logGroupName=self.group,
            startTime=self.from_ms,
            **({} if self.words is None else {"filterPattern": json.dumps(self.words)}),
        )
        for page in pages:
            for event in page["events"]:
                if (identity := _identity(event)) in self._seen:
                    continue
                self._seen[identity] = None
                if len(self._seen) > _SEEN_MAX:
                    self._seen.popitem(last=False)
                newest = max(newest, event["timestamp"])
                yield _line(event)
        self.from_ms = max(self.from_ms, newest - _LATE_MS)


def line_view(line: LogLine) -> View:
    """Show a line with its time, level and source."""
    level = f" {line.level:<5} " if line.level else " "
    source = (f"{line.source}: ", "dim") if line.source else ""
    return View(document_of(line), (Text.assemble((line.time, "dim"), level, source, line.text),))


def _identity(event: dict[str, Any]) -> str:
    """Return the event's ID, or the whole event as JSON if CloudWatch gives no ID."""
    return event.get("eventId") or json.dumps(event, sort_keys=True, default=str)


def _line(event: dict[str, Any]) -> LogLine:
    message = event["message"].rstrip("\n")
    level, text, source = "", message, ""
    with suppress(ValueError):
        document = parsed(message)
        if isinstance(document, dict):
            source = str(document.get("source", ""))
            # A metric (`_aws`) is printed as it is, even with a level and a message.
            if {"level", "message"} <= document.keys() and "_aws" not in document:
                level, text = str(document["level"]), str(document["message"])
    return LogLine(event["timestamp"], level, source, text, event["logStreamName"])


def logs(
    run: Annotated[str | None, typer.Argument(help="The run key; default: all runs.")] = None,
    function: FunctionNameIfGiven = None,
    log_group: Annotated[str | None, typer.Option(help="The log group; default: the function's own.")] = None,
    since_minutes: Annotated[int, typer.Option(min=1, help="How far to go back.")] = 60,
    endpoint_url: EndpointUrl = None,
    *,
    follow: Annotated[bool, typer.Option("--follow", help="Continue until Ctrl-C.")] = False,
    as_json: Json = False,
) -> None:
    """Print the log of a function. With --json, each line is a JSON object."""
    out, group = Output(as_json=as_json), log_group
    try:
        group = log_group or _group_of(function, endpoint_url)
        reader = LogReader(aws_client("logs", endpoint_url), group, epoch_ms() - since_minutes * 60_000, run)
        has_lines = False
        while True:
            for line in reader.look():
                has_lines = True
                out.stream(line_view(line))
            if not follow:
                break
            time.sleep(_POLL_S)
    except KeyboardInterrupt:
        return
    except AWS_ERRORS as error:
        right = "logs:FilterLogEvents on its log group" if group else "lambda:GetFunctionConfiguration on it"
        todo = f"name a function (or --log-group) that exists there, and allow {right}"
        raise failed(f"{group or function}: {error}", error, todo) from error
    if not has_lines:
        out.remark(f"no line in the last {since_minutes} minutes")


def _group_of(function: str | None, endpoint_url: str | None) -> str:
    if function is None:
        raise Problem("no function is named", todo="give --function, SOAL_FUNCTION, or --log-group")
    configuration = aws_client("lambda", endpoint_url).get_function_configuration(FunctionName=function)
    return str(
        configuration.get("LoggingConfig", {}).get("LogGroup")
        or f"/aws/lambda/{configuration.get('FunctionName', function)}"
    )
