"""The handler on Managed Instances, with a clock that a job can advance; the emulator imports it by name."""

from __future__ import annotations

import os
from pathlib import Path

os.environ["AWS_LAMBDA_MAX_CONCURRENCY"] = "1"  # in the emulator's own variables it asks for a mode that needs root

from handler.app import lambda_handler  # after setting the variable, which its import reads
from tests.support.deadlines import put_clock_forward

__all__ = ["lambda_handler"]

put_clock_forward(Path(os.environ["TEST_CLOCK_FILE"]))
