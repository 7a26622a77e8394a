"""`soal invoke`: a job on a deployed function."""

from __future__ import annotations

from typing import Annotated

import typer

from scripts.soal.commands import local  # noqa: TC001 - typer reads the annotations
from scripts.soal.console.output import output
from scripts.soal.console.problem import EXIT_OK, Problem
from scripts.soal.console.progress import JobProgress
from scripts.soal.invocation.event import read_event, with_token
from scripts.soal.invocation.until_done import until_done
from scripts.soal.remote.function import RemoteFunction

__all__ = ["invoke"]


def invoke(
    event: Annotated[str, typer.Argument(help="A JSON file, inline JSON, - (stdin), or s3://…/script.py")],
    function: Annotated[
        str, typer.Option("--function", "-f", envvar="SOAL_FUNCTION", help="The function's name or ARN.")
    ],
    endpoint_url: Annotated[
        str | None, typer.Option(help="Lambda's endpoint; without: that of your AWS configuration.")
    ] = None,
    *,
    asynchronous: Annotated[
        bool, typer.Option("--async", help="Put the event into the function's queue, and do not wait.")
    ] = False,
    do_until_done: Annotated[
        bool, typer.Option("--until-done", help="Invoke again until the run has come to its end, each step once.")
    ] = False,
    attempts_max: Annotated[int, typer.Option(min=1, max=100, help="With --until-done: how often at most.")] = 10,
    as_json: local.Json = False,
) -> None:
    """Run a job on a deployed function, and wait for its result, for up to 15 minutes.

    Exit codes: 0 success (or, with --async, queued), 1 failed or unknown, 2 usage, 75 try again, 124 deadline.
    """
    out = output(is_json=as_json)
    # A lost answer is no reason to lose the run: with a token of ours it can be found, and invoked again.
    delivered = with_token(read_event(event))
    remote = RemoteFunction(function, endpoint_url)
    if asynchronous:
        if do_until_done:
            raise Problem(
                "--async does not wait, --until-done does",
                todo="leave one of them out; SOAL_CONTINUE_MAX lets the function go on by itself",
            )
        out.sent(remote.send(delivered))
        return
    with JobProgress(out.talk, f"running on {function}", shows_log=False):
        if do_until_done:
            report = until_done(remote.invoke, delivered, attempts_max=attempts_max, remark=out.remark)
        else:
            report = remote.invoke(delivered)
    if report.problem is not None:
        raise Problem(report.problem, todo="see the function's log: soal logs", exit_code=report.exit_code)
    out.invocation(report)
    if report.exit_code != EXIT_OK:
        raise typer.Exit(report.exit_code)
