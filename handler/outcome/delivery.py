"""Deliver a result to Lambda: return it, or raise it as an error; either one is cut as far as its readers require."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from handler.outcome.cut import answerable, raisable
from handler.outcome.result import exit_status
from safewriter.errors import EXIT_OK

if TYPE_CHECKING:
    from handler.outcome.result import Result
    from handler.settings import HandlerSettings

__all__ = ["JobFailed", "deliver"]


class JobFailed(Exception):  # noqa: N818 - the function error's type, as users see it
    """The function error for everything but success; its message is the result document."""


def deliver(result: Result, settings: HandlerSettings | None) -> dict[str, Any]:
    """Return the document, or raise it as `JobFailed`, so that Lambda counts, retries and routes it as a failure."""
    is_fine = exit_status(result) == EXIT_OK or result.continued_by is not None
    if is_fine or (settings is not None and settings.errors == "return"):
        return answerable(result).document()
    raise JobFailed(json.dumps(raisable(result).document(), ensure_ascii=False)) from None
