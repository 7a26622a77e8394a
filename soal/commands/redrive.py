"""`soal redrive`: invoke the function again with the events of the failure queue, each as the same run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from handler.functions.redrive_queue import NotTakenError, redrive_queue
from soal.console.document import document_of
from soal.console.output import Output
from soal.console.problem import EXIT_FAILED, Problem
from soal.console.view import View, columns, number, styled
from soal.options import DryRun, EndpointUrl, FunctionName, Json
from soal.remote.aws import aws_client
from soal.remote.failure import AWS_ERRORS, failed
from soal.remote.function import RemoteFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handler.functions.redrive_queue import Redriven


def redrive(
    queue_url: Annotated[str, typer.Option(help="The failure queue: output FailureQueueUrl of the stack.")],
    function: FunctionName,
    job_queue_arn: Annotated[
        str | None,
        typer.Option(
            help="The queue of jobs: output JobQueueArn of the stack. Leave messages that SQS moved from other queues."
        ),
    ] = None,
    attempts_max: Annotated[
        int, typer.Option(min=1, max=100, help="Leave a run in the queue that has had this many attempts.")
    ] = 3,
    messages_max: Annotated[
        int, typer.Option(min=1, max=10_000, help="Receive no more than this many messages.")
    ] = 100,
    endpoint_url: EndpointUrl = None,
    *,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Invoke the function again with the events of the failure queue. Nothing is written twice.

    An event stays in the queue if its run was cancelled, must be changed first, or has used up its attempts. Exit code
    1 if Lambda refused an event.
    """
    out = Output(as_json=as_json)
    remote = RemoteFunction(function, endpoint_url)

    def send(event: object) -> str | None:
        try:
            return remote.send(event).request_id
        except Problem as problem:
            raise NotTakenError(str(problem)) from problem

    redriven: list[Redriven] = []
    try:
        redriven.extend(  # one by one, so that an error still shows the earlier ones
            redrive_queue(
                aws_client("sqs", endpoint_url),
                queue_url,
                None if dry_run else send,
                attempts_max=attempts_max,
                messages_max=messages_max,
                jobs_arn=job_queue_arn,
            )
        )
    except AWS_ERRORS as error:
        if redriven:
            out.show(redriven_view(redriven))
        todo = "name a queue that exists; sqs:ReceiveMessage, DeleteMessage and ChangeMessageVisibility are needed"
        raise failed(f"queue {queue_url}: {error}", error, todo) from error
    out.show(redriven_view(redriven))
    if dry_run:
        out.remark("nothing was invoked")
    if any(entry.what == "failed" for entry in redriven):
        raise typer.Exit(EXIT_FAILED)


def redriven_view(redriven: Sequence[Redriven]) -> View:
    """Show one row for each message."""
    table = columns("message", "result", "attempts so far", "request", "reason")
    for entry in redriven:
        reason = Text(entry.reason or "")
        table.add_row(entry.message_id, styled(entry.what), number(entry.attempt), entry.request_id or "", reason)
    return View(document_of(redriven), (table if redriven else "no message",))
