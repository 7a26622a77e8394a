"""System packages, where that is allowed: as root on Debian and its relatives."""

from __future__ import annotations

import os
import shutil
from typing import Final

from scripts.provision.command import run
from scripts.provision.report import say

__all__ = ["apt_install", "may_install"]

_QUIET: Final = {"DEBIAN_FRONTEND": "noninteractive"}


def may_install() -> bool:
    """Tell whether system packages can be installed here."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(package: str) -> None:
    """Install one system package, and say so. Raises `SetupError` if apt fails."""
    say(f"installing the system package {package} (apt-get install)")
    todo = f"install {package} yourself, then run scripts/setup again"
    run(["apt-get", "update", "--quiet"], what="apt-get update", todo=todo, env=_QUIET)
    run(
        ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", package],
        what=f"installing {package}",
        todo=todo,
        env=_QUIET,
    )
