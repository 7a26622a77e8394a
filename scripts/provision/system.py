"""Install system packages by apt. Only scripts/setup does that; every other command finds programs, or names them."""

from __future__ import annotations

import os
import shutil
from typing import Final

from scripts.provision.steps import run, say
from soal.console.problem import Failure

_QUIET: Final = {"DEBIAN_FRONTEND": "noninteractive"}


def install(package: str) -> bool:
    """Install a system package, with a message; return whether that was done: as root on Debian or a relative."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    say(f"installing the system package {package} (apt-get install)")
    todo = f"install {package} yourself, then run scripts/setup again"
    try:
        run(["apt-get", "update", "--quiet"], act="apt-get update", todo=todo, env=_QUIET)
        run(
            ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", package],
            act=f"installing {package}",
            todo=todo,
            env=_QUIET,
        )
    except Failure as error:
        say(str(error))
        return False
    return True
