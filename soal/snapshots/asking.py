"""The snapshots of a prefix, and what is wrong with them, for the commands."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from safewriter.snapshots.errors import (
    ConfigValidationError,
    PublishConflictError,
    PublishCurrentError,
    SnapshotError,
)
from safewriter.snapshots.read.source import Source
from soal.console.problem import EXIT_FAILED, EXIT_TRY_AGAIN, Problem
from soal.home import Home
from soal.target import target

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["problems", "source_of"]

_NEEDED: Final = ("cel_expr_python", "numpy", "pandas", "pyarrow", "xxhash")


def source_of(prefix: str, endpoint_url: str | None, *, local: bool) -> Source:
    """Open a prefix. Raises `Problem` if it is none, or no S3 is reached."""
    found = target(endpoint_url, Home.of(), local=local)
    try:
        return Source(prefix, found.store)
    except ConfigValidationError as error:
        raise Problem(str(error), todo="give the prefix as s3://bucket/prefix") from error


@contextmanager
def problems() -> Iterator[None]:
    """Turn an error of a snapshot into a `Problem`."""
    try:
        yield
    except ConfigValidationError as error:
        raise Problem(str(error), todo="correct the options") from error
    except (PublishConflictError, PublishCurrentError) as error:
        todo = "see which one is current with: soal snapshot history"
        raise Problem(str(error), todo=todo, exit_code=EXIT_TRY_AGAIN) from error
    except SnapshotError as error:
        todo = "see what is there with: soal snapshot history"
        raise Problem(str(error), todo=todo, exit_code=EXIT_FAILED) from error
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            raise
        raise Problem(
            f"snapshots need the package {error.name}", todo="install it with: pip install 'soal[snapshots]'"
        ) from error
