"""Load what the first block needs while the process is idle."""

from __future__ import annotations

import os

from safewriter.errors import SettingError
from safewriter.settings import Settings

__all__ = ["warm_up"]


def warm_up() -> None:
    """Import boto3 and make the client of the checkpoint bucket: a third of a second, while Java makes the session.

    Sends no request. Without a bucket it does nothing; the block will raise an error about that.
    """
    from safewriter.objects.s3 import open_store

    try:
        settings = Settings.from_environment(os.environ)
    except SettingError:
        return
    open_store(settings.checkpoint_bucket)  # and with it the client, which all stores of a process share
