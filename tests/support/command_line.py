"""The command line with all its commands, for typer's test client."""

from __future__ import annotations

from typing import Final

from soal.app import app_of

__all__ = ["app"]

app: Final = app_of()
