"""Files from a pinned wheel that is not installed: downloading from PyPI needs no rights on the machine."""

from __future__ import annotations

import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from scripts.provision.steps import run
from soal.console.problem import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scripts.provision.place import Place

_EXACTLY: Final = ("--no-deps", "--only-binary", ":all:", "--require-hashes")


@contextmanager
def downloaded_wheel(place: Place, requirement: str) -> Iterator[zipfile.ZipFile]:
    """Download and open the wheel that `requirements/<requirement>.txt` pins by hash."""
    pinned = place.requirements / f"{requirement}.txt"
    with place.scratch() as scratch:
        run(
            [place.python, "-m", "pip", "download", "--quiet", *_EXACTLY, "--requirement", pinned, "--dest", scratch],
            act=f"downloading the wheel of {pinned}",
            todo="check the network and pip's index settings, then run scripts/setup again",
        )
        wheels = list(scratch.glob("*.whl"))
        if len(wheels) != 1:
            raise Failure(f"{pinned} names {len(wheels)} wheels, not one", todo="run scripts/lock")
        with zipfile.ZipFile(wheels[0]) as wheel:
            yield wheel


def extract(wheel: zipfile.ZipFile, member: str, target: Path) -> None:
    """Write a member of the wheel to the path `target`. Raises `Failure` if there is no such member."""
    try:
        body = wheel.read(member)
    except KeyError as error:
        raise Failure(
            f"{wheel.filename} has no {member}", todo="pin a version that has it, then scripts/lock"
        ) from error
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(body)
