"""`soal invoke`: a job on a deployed function."""

from __future__ import annotations

from typing import Annotated

import typer

from soal.console.output import Output
from soal.console.problem import Problem
from soal.console.progress import JobProgress
from soal.invocation.event import read_event, run_key_of, with_token
from soal.invocation.report import conclude, until_done
from soal.options import AttemptsMax, EndpointUrl, Event, FunctionName, Json, UntilDone
from soal.remote.execution import followed
from soal.remote.function import RemoteFunction, sent_view


def invoke(
    event: Event,
    function: FunctionName,
    endpoint_url: EndpointUrl = None,
    *,
    asynchronous: Annotated[
        bool, typer.Option("--async", help="Put the event into the function's queue, and do not wait.")
    ] = False,
    do_until_done: UntilDone = False,
    attempts_max: AttemptsMax = 10,
    as_json: Json = False,
) -> None:
    """Run a job on a deployed function, and wait for its result.

    It waits for up to 15 minutes, which is as long as Lambda lets a caller wait: use --async for a longer run. For a
    durable function it waits until the execution has ended. Ctrl-C does not stop an execution.

    Exit codes: 0 success (or, with --async, queued), 1 failed or unknown, 2 usage, 75 try again, 124 deadline.
    """
    out = Output(as_json=as_json)
    # With a clientToken the caller can find a run whose answer was lost, and invoke it again.
    delivered = with_token(read_event(event))
    remote = RemoteFunction(function, endpoint_url)
    if asynchronous:
        if do_until_done:
            raise Problem(
                "--async does not wait, --until-done does",
                todo="leave one of them out; SOAL_CONTINUE_MAX lets the function continue by itself",
            )
        sent = remote.send(delivered)
        out.show(sent_view(sent))
        if sent.run_key is not None:
            out.remark(f"see its state with: soal runs show {sent.run_key}")
        return
    with JobProgress(out.talk, f"running on {function}", shows_log=False) as progress:
        if remote.is_durable():
            report = followed(remote.start(delivered), run_key_of(delivered), out, progress)
        elif do_until_done:
            report = until_done(remote.invoke, delivered, attempts_max=attempts_max, remark=out.remark)
        else:
            report = remote.invoke(delivered)
    conclude(out, report, todo="see the function's log: soal logs")
