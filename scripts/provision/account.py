"""The programs of an account on this machine: ministack in an environment of its own, and the CDK's command line.

They are in `.soal/account`, made when they are first asked for. Both locks have hashes: requirements/account.txt, and
scripts/account/cdk/npm-shrinkwrap.json. Node and npm are those of `.venv`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scripts.provision.jars import ensure_jars
from scripts.provision.java import ensure_java, find_maven
from scripts.provision.npm import NODE, ensure_npm
from scripts.provision.place import fingerprint
from scripts.provision.python_env import is_usable
from scripts.provision.steps import run, say

if TYPE_CHECKING:
    from pathlib import Path

    from scripts.provision.place import Place

_GLUE: Final = ("aws-json-protocol", "glue", "kms", "sts")
_TODO: Final = "check the network and the settings of pip, then try again"


@dataclass(frozen=True, slots=True)
class Programs:
    """`emulator`: the command of ministack behind its gateway; `cdk`: that of the CDK; `path`: the folder of Node."""

    emulator: tuple[str, ...]
    cdk: tuple[str, ...]
    path: Path


def ensure_account(place: Place) -> Programs:
    """Install what is missing or outdated. Raises `Failure`."""
    home, lock = place.home / "account", place.requirements / "account.txt"
    python = home / "python" / "bin" / "python"
    stamp = place.stamp("account")
    inputs = fingerprint([lock, str(place.root)])
    if not (stamp.matches(inputs) and is_usable(python)):
        stamp.clear()
        say(f"installing ministack ({lock.relative_to(place.root)})")
        uv: list[str | Path] = [place.venv / "bin" / "uv"]
        run([*uv, "venv", "--quiet", "--clear", "--python", place.python, home / "python"], act=str(home), todo=_TODO)
        install: list[str | Path] = ["pip", "install", "--quiet", "--require-hashes", "--requirement", lock]
        run([*uv, *install, "--python", python], act=f"installing {lock}", todo=_TODO)
        stamp.write(inputs)
    program = ensure_npm(place, "account/cdk", place.root / "scripts" / "account" / "cdk") / "aws-cdk" / "bin" / "cdk"
    gateway = place.root / "scripts" / "account" / "gateway.py"
    return Programs((str(python), "-P", str(gateway)), (str(NODE), str(program)), NODE.parent)


def ensure_glue_jars(place: Place) -> list[Path]:
    """Fetch the jars that the image slim lacks for the Glue catalog, as docs/guides/image names them. Raises
    `Failure`.
    """
    java, _ = ensure_java(place, os.environ)
    ensure_jars(place, lambda: find_maven(java), "full-jars")
    return [jar for name in _GLUE for jar in sorted((place.home / "full-jars").glob(f"{name}-[0-9]*.jar"))]
