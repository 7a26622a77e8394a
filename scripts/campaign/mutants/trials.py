"""Run tests in a copy of the working tree, and tell which one fails."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scripts.emulator.spark import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["Trial", "judged", "tried"]

_PYTEST: Final = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "")
_SUMMARY: Final = "short test summary info"
_FAILED: Final = "FAILED "
_SAID_MAX: Final = 2000


@dataclass(frozen=True, slots=True)
class Trial:
    """How a test run ended. `failed`: the first test that failed. `error`: why the run proves nothing."""

    failed: str | None = None
    error: str | None = None


def tried(tree: Path, targets: Iterable[str], limit_s: float) -> Trial:
    """Run the targets up to the first failure. Nothing of the run is left afterwards, whatever it has started."""
    temporary, said = tree.with_name("tmp"), tree.with_name("said")
    temporary.mkdir(exist_ok=True)
    # The guardian is this tree's, since a mutant may be of the very code that ends processes.
    guarded = [sys.executable, "-P", "-m", "scripts.guardian", "env", f"PYTHONPATH={tree}"]
    with (
        said.open("wb") as out,
        subprocess.Popen(
            [*guarded, sys.executable, "-P", *_PYTEST, *targets],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
            stdin=subprocess.PIPE,  # at its end the guardian ends all that is left
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for us: the guardian ends the tests in order
        ) as guardian,
    ):
        try:
            code: int | None = guardian.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
    return judged(code, said.read_text(encoding="utf-8", errors="replace"))


def judged(code: int | None, said: str) -> Trial:
    """Tell by pytest's exit code (None: it did not end) and its words how a run ended.

    Only a test that fails tells of the code. An error in a fixture or at the import may have any cause.
    """
    summary = said.rpartition(_SUMMARY)[2].splitlines()
    failed = next((line for line in summary if line.startswith(_FAILED)), None)
    if code == 0:
        return Trial()
    if code == 1 and failed is not None:
        return Trial(failed=failed.removeprefix(_FAILED).partition(" - ")[0])
    end = "the tests did not end in time" if code is None else f"pytest ended with {code}"
    return Trial(error=f"{end}: {said[-_SAID_MAX:]}")
