"""What a copy of a snapshot must get anew before its job: ids, connections, the clock."""

from __future__ import annotations

import random
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from handler.observability import logger
from safewriter.entropy import renew, unique_id
from safewriter.objects.s3 import forget_clients

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ClockError", "renew_process", "set_clock"]

_TOLERANCE_S: Final = 5.0
"""S3 names whole seconds, and its answer takes a while."""


class ClockError(Exception):
    """The machine's clock is wrong, and may not be set."""


def renew_process(*outside: str) -> None:
    """Mix texts from outside into all ids of this process, and drop clients with their connections and credentials."""
    renew(*outside)
    random.seed(unique_id())
    forget_clients()


def set_clock(ask: Callable[[], Any], *, set_to: Callable[[float], None] | None = None) -> None:
    """Set the clock to S3's if it is wrong. `ask` sends a request to S3 and returns boto3's answer.

    A restored memory may have the time of its snapshot: leases and deadlines would be in the past, and S3 refuses
    requests that are a quarter of an hour old. Raises `ClockError` if the clock is wrong and this process may not set
    it. Without an answer nothing is known, and the job will say what is wrong with S3.
    """
    try:
        answer = ask()
    except ClientError as error:
        answer = error.response
    except BotoCoreError as error:
        logger.warning("the clock was not compared with S3's: %s", error)
        return
    date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    if date is None:
        return
    right_s = parsedate_to_datetime(date).timestamp()
    wrong_by_s = time.time() - right_s
    if abs(wrong_by_s) <= _TOLERANCE_S:
        return
    try:
        (set_to or _set)(right_s)
    except OSError as error:
        raise ClockError(
            f"this machine's clock is wrong by {wrong_by_s:.0f} s, and the handler may not set it ({error}); give the"
            " MicroVM image the OS capabilities ALL"
        ) from None
    logger.warning("the clock was wrong by %.0f s; it has S3's time now", wrong_by_s)


def _set(epoch_s: float) -> None:
    time.clock_settime(time.CLOCK_REALTIME, epoch_s)
