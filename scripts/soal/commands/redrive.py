"""`soal redrive`: what has failed is tried again, as the same runs, so many times at most."""

from __future__ import annotations

from typing import Annotated

import typer
from botocore.exceptions import BotoCoreError, ClientError

from handler.functions.failure_queue import NotTakenError, redrive_queue
from scripts.soal.commands import local  # noqa: TC001 - typer reads the annotations
from scripts.soal.console.output import output
from scripts.soal.console.problem import EXIT_FAILED, Problem
from scripts.soal.remote.aws import aws_client
from scripts.soal.remote.function import RemoteFunction

__all__ = ["redrive"]


def redrive(
    queue_url: Annotated[str, typer.Option(help="The failure queue: output FailureQueueUrl of the stack.")],
    function: Annotated[
        str, typer.Option("--function", "-f", envvar="SOAL_FUNCTION", help="The function's name or ARN.")
    ],
    attempts_max: Annotated[int, typer.Option(min=1, max=100, help="Leave a run that has had so many attempts.")] = 3,
    messages_max: Annotated[int, typer.Option(min=1, max=10_000, help="Look at so many messages.")] = 100,
    endpoint_url: Annotated[str | None, typer.Option(help="AWS endpoint; without: that of AWS.")] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be invoked; invoke nothing.")] = False,
    as_json: local.Json = False,
) -> None:
    """Invoke again, asynchronously, what waits in the failure queue: nothing is written twice.

    Left in the queue are runs that were cancelled, that must be changed first, or that have had their attempts. Exit
    code 1 if Lambda did not take an event.
    """
    out = output(is_json=as_json)
    remote = RemoteFunction(function, endpoint_url)

    def send(event: object) -> str | None:
        try:
            return remote.send(event).request_id
        except Problem as problem:
            raise NotTakenError(str(problem)) from problem

    try:
        done = tuple(
            redrive_queue(
                aws_client("sqs", endpoint_url),
                queue_url,
                None if dry_run else send,
                attempts_max=attempts_max,
                messages_max=messages_max,
            )
        )
    except (BotoCoreError, ClientError) as error:
        raise Problem(
            f"queue {queue_url}: {error}",
            todo="name a queue that exists; sqs:ReceiveMessage, DeleteMessage and ChangeMessageVisibility are needed",
            exit_code=EXIT_FAILED,
        ) from error
    out.redriven(done)
    if dry_run:
        out.remark("nothing was invoked")
    if any(one.what == "failed" for one in done):
        raise typer.Exit(EXIT_FAILED)
