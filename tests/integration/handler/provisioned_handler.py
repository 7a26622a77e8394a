"""The handler as in a sandbox of provisioned concurrency; the emulator knows no other type than that on demand."""

from __future__ import annotations

import os

os.environ["AWS_LAMBDA_INITIALIZATION_TYPE"] = "provisioned-concurrency"

from handler.app import lambda_handler  # after the variable, which it reads when it is imported

__all__ = ["lambda_handler"]
