"""Mask secrets in log records by a filter on the handlers of a process, so that modules just log."""

from __future__ import annotations

import logging
import traceback
from types import NoneType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JOB", "MaskingFilter"]

JOB: Final = "job"
"""The `source` of the lines that a job has printed: they are already masked, within a time limit."""
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({})))


class MaskingFilter(logging.Filter):
    """Passes each record on, with its text, its error and its extra fields masked by `masked`."""

    def __init__(self, masked: Callable[[str], str]) -> None:
        super().__init__()
        self.masked = masked

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record in place; all handlers of a process may see the masked one."""
        if getattr(record, "source", None) == JOB:
            return True
        try:
            parts = [record.getMessage()]
            if record.exc_info and record.exc_info[0] is not None:
                parts.append("".join(traceback.format_exception(*record.exc_info)))
            parts += filter(None, (record.exc_text, record.stack_info))
            record.msg = self.masked("\n".join(parts))
            for name in vars(record).keys() - _STANDARD:
                value = getattr(record, name)
                if not isinstance(value, (bool, int, float, NoneType)):
                    setattr(record, name, self.masked(str(value)))
        except Exception as error:  # noqa: BLE001 - logging must not end a run; drop a line that was not searched
            record.msg = f"a line was not logged, since it could not be searched for secrets ({type(error).__name__})"
            for name in vars(record).keys() - _STANDARD:
                delattr(record, name)
        record.args, record.exc_info, record.exc_text, record.stack_info = (), None, None, None
        return True
