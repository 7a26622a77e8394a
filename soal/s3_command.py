"""The options that each command on an S3 has, and the handling of its errors."""

from __future__ import annotations

import functools
import inspect
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from soal.console.output import Output
from soal.home import Home
from soal.options import Bucket, EndpointUrl, Json, Local
from soal.target import checkpoint_store, find_target, store_errors_as_problems

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from safewriter.objects.s3 import S3ObjectStore
    from soal.target import Target


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a command: its output, and the S3 that it names."""

    out: Output
    home: Home
    endpoint_url: str | None
    bucket: str | None
    local: bool

    @functools.cached_property
    def target(self) -> Target:
        """The S3. Raises `Problem` if no local S3 runs, or the endpoint is none."""
        return find_target(self.endpoint_url, self.home, local=self.local)

    def checkpoints(self) -> S3ObjectStore:
        """Open the checkpoint bucket. Raises `Problem` if none is named, or its name is invalid."""
        return checkpoint_store(self.target, self.bucket, self.home)


def s3_command(
    *, has_bucket: bool = True, errors: Callable[[], AbstractContextManager[None]] = nullcontext
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function whose first parameter is the `Call`: give it the shared options, and turn errors
    into a `Problem`.

    `has_bucket`: with the option `--bucket`. `errors`: also turns the errors of the command's subject.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        def run(
            *,
            endpoint_url: EndpointUrl = None,
            bucket: Bucket = None,
            local: Local = False,
            as_json: Json = False,
            **own: Any,  # noqa: ANN401 - the command's own options
        ) -> None:
            out = Output(as_json=as_json)
            call = Call(out=out, home=Home.of(), endpoint_url=endpoint_url, bucket=bucket, local=local)
            with errors(), store_errors_as_problems():
                command(call, **own)

        _, *own = inspect.signature(command, eval_str=True).parameters.values()
        *shared, _ = inspect.signature(run, eval_str=True).parameters.values()
        options = [one for one in shared if has_bucket or one.name != "bucket"]
        functools.update_wrapper(run, command)
        parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, *options)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
        return run

    return decorated
