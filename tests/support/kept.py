"""A function's processes that belong to no job: the handler's own, and those that wait for the next job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from handler.spark.command import HOST

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["of_jobs"]

_OWN = {"awslambdaric", HOST, "server.py"}


def of_jobs(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    """Return the live processes of jobs. A forked driver keeps its server's command line, but has a name of its own,
    and a server as its parent.
    """
    found = set()
    for process in processes:
        try:
            words = {Path(word).name for word in process.cmdline()}
            parent = process.parent()
            is_driver = "server.py" in words and parent is not None and parent.name() != "java" != process.name()
            if (is_driver or not _OWN & words) and process.status() != psutil.STATUS_ZOMBIE:
                found.add(process)
        except psutil.NoSuchProcess:
            continue
    return found
