"""The handler, with a clock that a job can advance; in a module of its own, since the emulator imports it by name."""

import os
from pathlib import Path

from handler.app import lambda_handler
from tests.support.deadlines import put_clock_forward

__all__ = ["lambda_handler"]

put_clock_forward(Path(os.environ["TEST_CLOCK_FILE"]))
