"""`soal logs`: the log of a deployed function in CloudWatch, of one run or of all."""

from __future__ import annotations

import time
from typing import Annotated, Final

import typer
from botocore.exceptions import BotoCoreError, ClientError

from safewriter.deadline import epoch_ms
from soal.console.output import Output
from soal.console.problem import EXIT_FAILED, Problem
from soal.options import EndpointUrl, FunctionNameIfGiven, Json
from soal.remote.aws import aws_client
from soal.remote.logs import LogReader, line_view

__all__ = ["logs"]

_POLL_S: Final = 2.0


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
    """Print the log of a function. With --json it is one JSON object a line."""
    out = Output(as_json=as_json)
    try:
        reader = LogReader(
            aws_client("logs", endpoint_url),
            log_group or _group_of(function, endpoint_url),
            epoch_ms() - since_minutes * 60_000,
            run,
        )
        found = False
        while True:
            for line in reader.look():
                found = True
                out.stream(line_view(line))
            if not follow:
                break
            time.sleep(_POLL_S)
    except KeyboardInterrupt:
        return
    except (BotoCoreError, ClientError) as error:
        raise Problem(
            str(error),
            todo="name a function (or --log-group) that exists there, and allow logs:FilterLogEvents on its log group",
            exit_code=EXIT_FAILED,
        ) from error
    if not found:
        out.remark(f"no line in the last {since_minutes} minutes")


def _group_of(function: str | None, endpoint_url: str | None) -> str:
    if function is None:
        raise Problem("no function is named", todo="give --function, SOAL_FUNCTION, or --log-group")
    found = aws_client("lambda", endpoint_url).get_function_configuration(FunctionName=function)
    return str(found.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{found['FunctionName']}")
