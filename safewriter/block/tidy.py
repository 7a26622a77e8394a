"""Background clean-up after the verdict. If a kill interrupts it, a later settler repeats it."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from safewriter.errors import SafeWriterError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["tidy"]

_log = logging.getLogger(__name__)


def tidy(subject: str, work: Callable[[], object]) -> None:
    """Run `work` on a non-daemon thread; `subject` names it in a warning."""

    def run() -> None:
        try:
            work()
        except (SafeWriterError, LookupError) as error:
            _log.warning("cleaning up after %s is left to a later settler: %s", subject, error)

    threading.Thread(target=run, name="safewriter-tidy").start()
