"""What a process spends is counted, and that of the processes which it has started, even if they have ended."""

from __future__ import annotations

import os
import sys
from subprocess import run
from typing import TYPE_CHECKING

import pytest

from tests.lab.processes import Child, Peaks, Usage

if TYPE_CHECKING:
    from pathlib import Path

_SPEND = "import time\nwhile time.process_time() < 0.3: pass"


def test_a_process_that_has_ended_has_spent_its_seconds() -> None:
    """Python workers end while their driver goes on."""
    usage = Usage(os.getpid())
    before = usage.cpu_s()
    run([sys.executable, "-c", _SPEND], check=True)
    after = usage.cpu_s()
    assert after["driver"] - before["driver"] >= 0.25  # the kernel counts in hundredths


def test_the_peak_of_each_kind_is_kept() -> None:
    """The highest sample counts, and a peak holds at least one."""
    with Peaks(Usage(os.getpid())) as peaks:
        pass
    assert peaks.mb["driver"] > 10


def test_a_process_that_dies_tells_why(tmp_path: Path) -> None:
    """Its log is in the error; nobody waits for an answer that does not come."""
    with pytest.raises(RuntimeError, match="no_such_module"), Child("tests.lab.bench.no_such_module", (), tmp_path):
        pass
