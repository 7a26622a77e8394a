"""`scripts/lab examples`: Spark's own Python examples as jobs of the image's variants."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from handler.spark.missing_dependencies import SLIM, Variant
from soal.console.output import Output
from soal.console.problem import EXIT_FAILED
from soal.console.progress import JobProgress
from soal.home import Home
from soal.options import Json
from tests.lab.examples.running import run_examples
from tests.lab.examples.view import examples_view

__all__ = ["examples"]


def examples(
    folder: Annotated[Path, typer.Argument(help="The folder of the results; an interrupted run goes on there.")],
    variant: Annotated[Variant, typer.Option(help="The image's variant.")] = SLIM,
    select: Annotated[str, typer.Option(help="A part of the examples' names, as in sql/.")] = "",
    *,
    as_json: Json = False,
) -> None:
    """Run Spark's own Python examples as jobs of a variant, on an S3 of their own.

    Exit codes: 0 each has run, or ended with the error that names what the variant lacks; 1 some did neither.
    """
    out = Output(as_json=as_json)
    with JobProgress(out.talk, f"Spark's examples on the variant {variant}") as progress:
        records = run_examples(folder, variant, Home.of(), select, progress.says)
    out.show(examples_view(records))
    if any(record.is_open for record in records):
        raise typer.Exit(EXIT_FAILED)
