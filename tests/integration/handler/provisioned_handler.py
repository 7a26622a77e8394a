"""The handler in a sandbox of provisioned concurrency, which the emulator lacks."""

from __future__ import annotations

import os

os.environ["AWS_LAMBDA_INITIALIZATION_TYPE"] = "provisioned-concurrency"

from handler.app import lambda_handler  # after setting the variable, which its import reads

__all__ = ["lambda_handler"]
