"""Keep an account while standard input is open: `python -m scripts.account.keeper DOCKER LABEL FOLDER COMMAND …`.

At the end, whatever ended it, no process of the account is left, and no container with the label. When the input is
closed, the folder goes, too.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from handler.process.tree import become_subreaper, end_all

if TYPE_CHECKING:
    from collections.abc import Sequence

_END_TIMEOUT_S: Final = 30.0


def main(docker: str, label: str, folder: str, command: Sequence[str]) -> int:
    """Return the exit code of the command, 0 if we ended it."""
    become_subreaper()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    handle = os.pidfd_open(child.pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    ready = {file for file, _ in poll.poll()}
    ended = handle in ready
    code = child.wait() if ended else 0
    # The emulator first: it would start a container again.
    end_all(without=frozenset(), timeout_s=_END_TIMEOUT_S)
    _remove_containers(docker, label)
    if not ended:  # else somebody will read there why
        shutil.rmtree(folder, ignore_errors=True)
    return code


def _remove_containers(docker: str, label: str) -> None:
    listed = subprocess.run(
        [docker, "ps", "--all", "--quiet", "--filter", f"label={label}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_END_TIMEOUT_S,
        check=False,
    )
    if found := listed.stdout.split():
        subprocess.run(
            [docker, "rm", "--force", "--volumes", *found],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=_END_TIMEOUT_S,
            check=False,
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
