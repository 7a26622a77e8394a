"""`soal invoke`: a job on a deployed function, or in a MicroVM of a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from safewriter.settings import bucket_of
from soal.console.output import Output
from soal.console.problem import Problem
from soal.console.progress import JobProgress
from soal.home import Home
from soal.invocation.event import read_event, run_key_of, with_token
from soal.invocation.report import Report, conclude, until_done
from soal.options import AttemptsMax, EndpointUrl, Event, FunctionNameIfGiven, Json, UntilDone
from soal.remote.execution import followed
from soal.remote.function import RemoteFunction, sent_view
from soal.remote.microvm import RemoteMicrovms, started_view
from soal.target import find_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from soal.console.view import View


def invoke(
    event: Event,
    function: FunctionNameIfGiven = None,
    endpoint_url: EndpointUrl = None,
    microvm: Annotated[
        str | None,
        typer.Option(help="Start a MicroVM of this stack instead; an event has 4,096 bytes at most."),
    ] = None,
    *,
    asynchronous: Annotated[
        bool,
        typer.Option("--async", help="Put the event into the function's queue, or start the MicroVM, and do not wait."),
    ] = False,
    do_until_done: UntilDone = False,
    attempts_max: AttemptsMax = 10,
    as_json: Json = False,
) -> None:
    """Run a job on a function or in a MicroVM, and wait for its result.

    For a function it waits for up to 15 minutes, which is as long as Lambda lets a caller wait: use --async for a
    longer run. For a durable function it waits until the execution has ended; for a MicroVM until the result is
    there, or the MicroVM has ended without one. Ctrl-C stops neither an execution nor a MicroVM.

    Exit codes: 0 success (or, with --async, queued or started), 1 failed or unknown, 2 usage, 75 try again, 124
    deadline.
    """
    out = Output(as_json=as_json)
    if asynchronous and do_until_done:
        raise Problem(
            "--async does not wait, --until-done does",
            todo="leave one of them out; SOAL_CONTINUE_MAX lets the function continue by itself",
        )
    # With a clientToken the caller can find a run whose answer was lost, and invoke it again.
    delivered = with_token(read_event(event))
    attempts = attempts_max if do_until_done else None
    if microvm is not None:
        microvms = RemoteMicrovms.of_stack(microvm, endpoint_url)
        if asynchronous:
            started = microvms.start(delivered)
            _see(out, started_view(started), started.run_key)
        else:
            _in_microvm(out, microvms, delivered, attempts)
    elif function is not None:
        remote = RemoteFunction(function, endpoint_url)
        if asynchronous:
            sent = remote.send(delivered)
            _see(out, sent_view(sent), sent.run_key)
        else:
            _on_function(out, remote, delivered, attempts)
    else:
        raise Problem(
            "neither a function nor a stack with MicroVMs is named",
            todo="give --function, or set SOAL_FUNCTION; or give --microvm STACK",
        )


def _see(out: Output, view: View, run_key: str | None) -> None:
    out.show(view)
    if run_key is not None:
        out.remark(f"see its state with: soal runs show {run_key}")


def _on_function(out: Output, remote: RemoteFunction, event: Any, attempts: int | None) -> None:  # noqa: ANN401 - any JSON value
    with JobProgress(out.talk, f"running on {remote.name}", shows_log=False) as progress:
        if remote.is_durable():
            report = followed(remote.start(event), run_key_of(event), out, progress)
        else:
            report = _attempted(out, remote.invoke, event, attempts)
    conclude(out, report, todo="see the function's log: soal logs")


def _in_microvm(out: Output, remote: RemoteMicrovms, event: Any, attempts: int | None) -> None:  # noqa: ANN401 - as above
    store = find_target(remote.endpoint_url, Home.of(), local=False).store(bucket_of(remote.bucket))
    with JobProgress(out.talk, "running in a MicroVM", shows_log=False) as progress:

        def attempt(event: Any) -> Report:  # noqa: ANN401 - as above
            started = remote.start(event)
            out.remark(f"started the MicroVM {started.microvm_id}")
            return remote.followed(started, store, progress.says)

        report = _attempted(out, attempt, event, attempts)
    conclude(out, report, todo=f"see its log: aws logs tail {remote.log_group}")


def _attempted(out: Output, attempt: Callable[[Any], Report], event: Any, attempts: int | None) -> Report:  # noqa: ANN401 - as above
    if attempts is None:
        return attempt(event)
    return until_done(attempt, event, attempts_max=attempts, remark=out.remark)
