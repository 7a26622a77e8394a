"""Run tests in a process tree of their own, and ensure that none of its processes survives."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from scripts.provision.place import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["run_pytest"]

# All marks: the caller names its tests.
_PYTEST: Final = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "")


def run_pytest(tree: Path, arguments: Iterable[str], said: Path, limit_s: float | None = None) -> int | None:
    """Run tests of a tree; return pytest's exit code, or None if they did not end within `limit_s`.

    Its output goes to the file `said`, its temporary files into a folder beside that.
    """
    temporary = said.with_name("tmp")
    temporary.mkdir(exist_ok=True)
    temporary.parent.chmod(0o711)  # as root PostgreSQL's server runs as nobody, in a folder below
    # The process owner is from this tree: a mutant in the copy may break the very code that ends processes.
    owned = [sys.executable, "-P", "-m", "scripts.process_owner", "env", f"PYTHONPATH={tree}"]
    with (
        said.open("wb") as out,
        subprocess.Popen(
            [*owned, sys.executable, "-P", *_PYTEST, *arguments],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
            stdin=subprocess.PIPE,  # at its end the process owner kills all remaining processes
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for this process: the owner ends the tests in order
        ) as owner,
    ):
        try:
            return owner.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
