"""`scripts/lab`: benchmarks, the fault campaign, the paper's experiment, and Spark's examples."""

from __future__ import annotations

from typing import Final

import typer

from soal.console.ending import run
from tests.lab.commands import bench, experiment, faults
from tests.lab.commands.bench_all import everything, figure
from tests.lab.commands.examples import examples
from tests.lab.commands.turns import turns

__all__ = ["app", "main"]

app: Final = typer.Typer(
    no_args_is_help=True,
    help="The evidence for SafeWriter, and its measurements.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
bench.app.command("all")(everything)
bench.app.command()(figure)
app.add_typer(bench.app, name="bench")
app.add_typer(faults.app, name="faults")
app.add_typer(experiment.app, name="experiment")
app.command()(turns)
app.command()(examples)


def main() -> None:
    """Run the command line and end the process."""
    run(lambda: app(prog_name="scripts/lab"))


if __name__ == "__main__":
    main()
