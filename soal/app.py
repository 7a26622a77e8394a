"""The `soal` command line. A command's module is imported only when the command runs, which keeps `--help` fast."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Final, Literal

import typer

from soal.clone import from_clone
from soal.console.ending import run


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its module, and its line in the list of commands."""

    module: str
    name: str
    line: str
    kind: Literal["command", "group"] = "command"


COMMANDS: Final = (
    Command("soal.commands.doctor", "doctor", "Examine this machine, a function or a script."),
    Command("soal.commands.invoke", "invoke", "Run a job on a function or in a MicroVM, and wait for its result."),
    Command("soal.commands.logs", "logs", "Print the log of a function."),
    Command("soal.commands.graduate", "graduate", "Hand the job to EMR Serverless, as the same run."),
    Command("soal.commands.recover", "recover", "Settle the open writes of dead runs, and clean up after them."),
    Command("soal.commands.redrive", "redrive", "Invoke the function again with the events of the failure queue."),
    Command("soal.commands.orphans", "orphans", "Find files in a table's folder that no version refers to."),
    Command("soal.commands.runs", "runs", "The state of runs and their writes.", "group"),
    Command("soal.commands.locks", "locks", "The locks of jobs that take turns.", "group"),
    Command("soal.commands.snapshot", "snapshot", "Snapshots: data frames as sharded key-value files.", "group"),
    Command("scripts.local.command", "local", "An S3 and a Lambda function on this machine.", "group"),
    Command("scripts.image.command", "image", "Build, test and measure the function's image.", "group"),
)


def app_of(word: str | None = None) -> typer.Typer:
    """Return the app with the command `word` and only the help lines of the others; with all commands if None."""
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
        help="Spark on AWS Lambda, without lost writes.",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for command in COMMANDS:
        if word is not None and word != command.name:
            app.command(command.name, help=command.line)(_uncalled)
            continue
        is_of_clone = command.module.startswith("scripts.")
        module = from_clone(command.module, f"soal {command.name}") if is_of_clone else import_module(command.module)
        if command.kind == "command":
            app.command(command.name)(getattr(module, command.name))
        else:
            app.add_typer(module.app, name=command.name)
    app.callback()(_soal)
    return app


def _print_version(asked: bool) -> None:  # noqa: FBT001 - the signature of a callback of typer
    if asked:
        from importlib.metadata import version

        print("soal", version("soal"))
        raise typer.Exit


def _soal(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Spark on AWS Lambda, without lost writes."""


def _uncalled() -> None:
    raise AssertionError  # `app_of` imports the command that is called


def main() -> None:
    """Run the command line and end the process."""
    # For completion the shell passes the command line in environment variables.
    command = None if "_SOAL_COMPLETE" in os.environ else next((word for word in sys.argv[1:] if word[:1] != "-"), "")
    run(lambda: app_of(command)(prog_name="soal"))
