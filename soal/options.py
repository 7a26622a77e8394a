"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from handler.spark.missing_dependencies import Variant

Json = Annotated[bool, typer.Option("--json", help="Print one JSON value on stdout.")]
Local = Annotated[
    bool, typer.Option("--local", help="Use the S3 (and the Iceberg catalog) of `soal local up` instead of AWS.")
]
EndpointUrl = Annotated[
    str | None,
    typer.Option("--endpoint-url", help="Use this endpoint, with your AWS credentials; default: AWS."),
]
Bucket = Annotated[
    str | None,
    typer.Option("--bucket", help="Bucket (or bucket/prefix) of the checkpoints; default: SW_CHECKPOINT_BUCKET."),
]
_FUNCTION: Final = typer.Option("--function", "-f", envvar="SOAL_FUNCTION", help="The function's name or ARN.")
FunctionName = Annotated[str, _FUNCTION]
FunctionNameIfGiven = Annotated[str | None, _FUNCTION]
Event = Annotated[str, typer.Argument(help="A JSON file, inline JSON, - (stdin), or s3://…/script.py")]
UntilDone = Annotated[
    bool,
    typer.Option(
        "--until-done",
        help="Invoke again until the run has ended; each step is written once. A durable function does so by itself.",
    ),
]
ImageVariant = Annotated[Variant, typer.Option("--variant", help="The image's variant.")]
AttemptsMax = Annotated[int, typer.Option(min=1, max=100, help="With --until-done: how often at most.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what the command would do; change nothing.")]
RunKey = Annotated[str, typer.Argument(help="The run key: the event's clientToken, or as `soal runs list` shows it.")]
