"""`soal local …`: an S3 and a Lambda function on this machine.

A command imports the handler's code or an AWS client only when it runs.
"""

from __future__ import annotations

import json
import shlex
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from handler.spark.missing_dependencies import SLIM, Variant
from scripts.accommodations import ROWS, SEED, write_csv
from soal.console.output import Output
from soal.console.problem import EXIT_FAILED, EXIT_OK, Problem
from soal.home import Home
from soal.options import AttemptsMax, Event, Json, UntilDone

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scripts.local.own_script import Written

_POLL_S: Final = 0.5

_TimeoutS = Annotated[int, typer.Option(min=1, max=28_800, help="The function's timeout.")]
_MemoryMb = Annotated[int, typer.Option(min=128, max=32_768, help="The function's memory.")]
_Env = Annotated[list[str] | None, typer.Option(help="NAME=VALUE for the function's environment.")]
_Variant = Annotated[Variant, typer.Option(help="The image's variant; full needs scripts/setup --variant full.")]

app = typer.Typer(no_args_is_help=True, help="An S3 and a Lambda function on this machine.")


@app.command()
def up(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 chooses a free one.")] = 0,
    bucket: Annotated[list[str] | None, typer.Option(help="A bucket to make beside the usual ones.")] = None,
    image: Annotated[
        str | None, typer.Option(help="With --account: the function's image, as Docker knows it; default: soal.")
    ] = None,
    *,
    iceberg: Annotated[bool, typer.Option("--iceberg", help="Start an Iceberg REST catalog, too: `local`.")] = False,
    account: Annotated[
        bool, typer.Option("--account", help="Start an AWS account instead, bootstrapped, to deploy into.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Start an S3 in the background, with sample jobs and data. Does nothing if it runs already."""
    if account:
        _account_up(image, port=port, bucket=bucket, iceberg=iceberg, as_json=as_json)
        return
    if image is not None:
        raise Problem("--image is the image of an account's function", todo="add --account, or leave it out")
    from scripts.local.background import ensure_up
    from scripts.local.inventory import content, local_view
    from soal.target import local_target

    out = Output(as_json=as_json)
    state, is_new = ensure_up(Home.of(), port=port, buckets=bucket or (), iceberg=iceberg)
    out.remark("started" if is_new else "runs already")
    out.show(local_view(state, content(local_target(state.endpoint).client())))


def _account_up(image: str | None, *, port: int, bucket: list[str] | None, iceberg: bool, as_json: bool) -> None:
    from scripts.image.build import TAG
    from scripts.local.account import account_view, ensure_up
    from soal.console.progress import JobProgress

    if port or bucket or iceberg:
        raise Problem("--port, --bucket and --iceberg are of the local S3", todo="leave them out, or --account")
    out = Output(as_json=as_json)
    home = Home.of()
    with JobProgress(out.talk, "starting the account"):
        state, is_new = ensure_up(home, image or TAG)
    out.remark("started" if is_new else "runs already")
    out.show(account_view(state, home))


@app.command()
def down(*, as_json: Json = False) -> None:
    """Stop the S3 in the background, its Iceberg catalog and an account, and delete their data."""
    from scripts.local.account import ensure_down as account_down
    from scripts.local.background import ensure_down
    from scripts.local.inventory import local_view

    out = Output(as_json=as_json)
    ended = [state for state in (ensure_down(Home.of()), account_down(Home.of())) if state is not None]
    out.remark(", ".join(f"ended {state.endpoint}" for state in ended) or "nothing was running")
    if as_json:
        out.show(local_view(None))


@app.command()
def status(*, as_json: Json = False) -> None:
    """Show the endpoint of the local S3 and the size of its buckets; exit code 1 if it does not run."""
    from scripts.local.account import running as running_account
    from scripts.local.inventory import content, local_view
    from soal.local.state import running
    from soal.target import local_target

    out = Output(as_json=as_json)
    if (account := running_account(Home.of())) is not None:
        out.remark(f"an account runs at {account.endpoint}")
    state = running(Home.of())
    out.show(local_view(state, () if state is None else content(local_target(state.endpoint).client())))
    if state is None:
        out.remark("start it with: soal local up")
        raise typer.Exit(EXIT_FAILED)


@app.command()
def invoke(
    event: Event,
    endpoint_url: Annotated[
        str | None,
        typer.Option(help="Use this endpoint as S3, with your AWS credentials; default: the S3 of `soal local up`."),
    ] = None,
    timeout_s: _TimeoutS = 300,
    memory_mb: _MemoryMb = 3008,
    env: _Env = None,
    *,
    do_until_done: UntilDone = False,
    attempts_max: AttemptsMax = 10,
    durable: Annotated[
        bool, typer.Option("--durable", help="One execution of Lambda's durable service: attempts until it has ended.")
    ] = False,
    docker: Annotated[bool, typer.Option("--docker", help="Run the image, not the working tree.")] = False,
    image: Annotated[
        str | None, typer.Option(help="With --docker: the image's name; default: soal, or soal-full.")
    ] = None,
    variant: _Variant = SLIM,
    logs: Annotated[bool, typer.Option("--logs", help="Print the function's log on stderr.")] = False,
    as_json: Json = False,
) -> None:
    """Run a job: the real handler under Lambda's runtime interface emulator, with --durable also AWS's emulation of the
    durable service. An execution ends with this command.

    Exit codes: 0 success, 1 failed or unknown, 2 usage, 75 try again, 124 deadline.
    """
    from scripts.image.build import tag_of
    from scripts.local.function import Function, assignments, function_variables, home_of_variant
    from soal.console.progress import JobProgress
    from soal.invocation.event import read_event, with_token
    from soal.invocation.report import conclude, until_done
    from soal.remote.execution import Execution
    from soal.target import checkpoint_bucket, find_target

    out = Output(as_json=as_json)
    home = Home.of()
    delivered = read_event(event)
    assigned = assignments(env or ())
    target = find_target(endpoint_url, home, local=endpoint_url is None)
    variant_home = None if docker else home_of_variant(home, variant)
    variables = function_variables(target, checkpoint_bucket(target), assigned, variant_home, variant)
    with JobProgress(out.talk, "running", shows_log=logs) as progress:
        function = Function(
            variables,
            timeout_s,
            memory_mb,
            home,
            progress.line,
            image=(image or tag_of(variant)) if docker else None,
            python=None if variant_home is None else variant_home.python,
        )
        if durable:
            with function.durable() as service:
                execution = Execution(
                    service.start(json.dumps(with_token(delivered))), service.client(), poll_s=_POLL_S
                )
                report = execution.report(progress.says)
        elif do_until_done:
            report = until_done(function.invoke, with_token(delivered), attempts_max=attempts_max, remark=out.remark)
        else:
            report = function.invoke(delivered)
    conclude(out, report, todo="give --timeout-s more, or see --logs", has_shown_log=logs)


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    script: Annotated[Path, typer.Argument(help="A Python script on this machine.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="The script's arguments. A file on this machine becomes its s3a:// path.")
    ] = None,
    timeout_s: _TimeoutS = 300,
    memory_mb: _MemoryMb = 3008,
    env: _Env = None,
    variant: _Variant = SLIM,
    client_token: Annotated[
        str | None,
        typer.Option(help="The run key: that of an earlier run continues it; default: a new one."),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Run a script of this machine as a job, with its log, and tell how to read what it has written. Starts the local
    S3 if none runs, and uploads the script and the files that its arguments name. Options come before the script.

    Exit codes: as `soal local invoke`.
    """
    from scripts.local.background import ensure_up, log_of_run
    from scripts.local.function import Function, assignments, function_variables, home_of_variant
    from scripts.local.own_script import commits, own_script, written
    from soal.console.progress import JobProgress
    from soal.invocation.report import conclude
    from soal.target import checkpoint_bucket, local_target

    out = Output(as_json=as_json)
    home = Home.of()
    own = own_script(script, arguments or ())
    for doubt in own.doubts:
        out.remark(f"note: {doubt}")
    # The answer is shown: the log need not tell it, too, as the traceback of an error of the handler's.
    assigned = {"SOAL_ERRORS": "return", **assignments(env or ())}
    variant_home = home_of_variant(home, variant)
    state, is_new = ensure_up(home, port=0, buckets=())
    if is_new:
        out.remark("started the local S3; end it, and delete its data, with: soal local down")
    target = local_target(state.endpoint, state.catalog)
    client = target.client()
    run_key = uuid.uuid4().hex if client_token is None else client_token
    event = {**own.uploaded(client), "clientToken": run_key}
    out.remark(" ".join(["running", event["entryPoint"], *event["entryPointArguments"]]))
    out.remark(f"run key: {run_key}")
    before = commits(client)
    variables = function_variables(target, checkpoint_bucket(target), assigned, variant_home, variant)
    with (
        log_of_run(home, run_key).open("a", encoding="utf-8", errors="backslashreplace") as log,
        JobProgress(out.talk, "running", shows_log=True, log=log) as progress,
    ):
        function = Function(variables, timeout_s, memory_mb, home, progress.line, python=variant_home.python)
        report = function.invoke(event)
    try:
        conclude(out, report, todo="give --timeout-s more", has_shown_log=True)
    finally:
        _tell_written(out, written(commits(client) - before, target))
        if report.exit_code != EXIT_OK:
            out.remark(f"the whole log, with Java's stacks: {log.name}")
            again = f"--client-token {shlex.quote(run_key)}"
            out.remark(f"continue this run: the same command, with {again} before the script")


def _tell_written(out: Output, tables: Iterable[Written]) -> None:
    for table in tables:
        out.remark(f"written: {table.location} ({table.kind})")
        if table.read is not None:
            out.remark(f"read it: {table.read}")


@app.command()
def data(
    path: Annotated[str, typer.Argument(help="The file to write; - for stdout.")],
    rows: Annotated[int, typer.Option(min=0)] = ROWS,
    seed: Annotated[int, typer.Option()] = SEED,
) -> None:
    """Write made-up accommodations as a CSV file; the same seed gives the same rows."""
    if path == "-":
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
        write_csv(sys.stdout, rows, seed=seed)
        return
    try:
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            write_csv(file, rows, seed=seed)
    except OSError as error:
        raise Problem(f"{path}: {error.strerror}", todo="give a path that can be written") from error
