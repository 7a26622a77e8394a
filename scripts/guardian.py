"""Run a command so that none of its processes outlives the caller, and together they keep to a memory limit, if one is
given: `python -m scripts.guardian [--memory-mb MB] COMMAND ...`.

The caller holds the other end of our standard input. When it closes (the caller has ended, or was killed), this program
kills every process that the command has started, in other sessions, too: it is a subreaper, so it inherits orphans.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from handler.process.tree import become_subreaper, end_all, signal_all
from scripts.memory_limit import MemoryLimit

if TYPE_CHECKING:
    from collections.abc import Sequence

_END_TIMEOUT_S: Final = 10.0
_LIMIT: Final = "--memory-mb"


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code, 128 + n for signal n, or 0 if this program killed it."""
    is_limited = arguments[0] == _LIMIT
    limit = MemoryLimit(int(arguments[1])) if is_limited else None
    command = arguments[2:] if is_limited else arguments
    counter = {} if limit is None else {"SOAL_MEMORY_KILLS": str(limit.counter)}
    become_subreaper()
    child = subprocess.Popen(command, env={**os.environ, **counter}, stdin=subprocess.DEVNULL, start_new_session=True)
    handle = os.pidfd_open(child.pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    ready: set[int] = set()
    while not ready:
        ready = {file for file, _ in poll.poll(None if limit is None else limit.look() * 1000)}
    code = child.wait() if handle in ready else 0
    signal_all(signal.SIGSTOP, without=frozenset())  # or one complains in the log that another one has ended
    end_all(without=frozenset(), timeout_s=_END_TIMEOUT_S)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
