"""Own a command: `python -m scripts.process_owner [OPTIONS] COMMAND ...`. None of its processes outlives the caller.

The caller holds the other end of our standard input. When it closes (the caller has ended, or was killed), this program
kills every process that the command has started, in other sessions, too: it is a subreaper, so it inherits orphans.
After any end it removes the containers that `--containers` names, by the client `--docker`.
"""

from __future__ import annotations

import argparse
import os
import select
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from handler.process.tree import become_subreaper, end_all, signal_all
from scripts.memory_limit import MemoryLimit

if TYPE_CHECKING:
    from collections.abc import Sequence

_END_TIMEOUT_S: Final = 30.0


def end(owner: subprocess.Popen[bytes], timeout_s: float) -> None:
    """Let an owner of a command end by closing its input; kill it if it has not ended in `timeout_s` seconds."""
    if owner.stdin is not None:
        owner.stdin.close()
    try:
        owner.wait(timeout_s)
    except subprocess.TimeoutExpired:
        owner.kill()
        owner.wait(timeout_s)


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code, 128 + n for signal n, or 0 if this program killed it."""
    parser = argparse.ArgumentParser(prog="process_owner")
    parser.add_argument("--memory-mb", type=int, help="the limit of all processes together")
    parser.add_argument("--docker", help="the client that removes containers")
    parser.add_argument("--containers", help="a filter of `docker ps`")
    parser.add_argument("--folder", help="a folder that goes with the caller; a command that ends leaves its log there")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    limit = None if options.memory_mb is None else MemoryLimit(options.memory_mb)
    counter = {} if limit is None else {"SOAL_MEMORY_KILLS": str(limit.counter)}
    become_subreaper()
    variables = {**os.environ, **counter}
    child = subprocess.Popen(options.command, env=variables, stdin=subprocess.DEVNULL, start_new_session=True)
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
    if options.containers is not None:  # after the processes, which might start one again
        _remove_containers(options.docker, options.containers)
    if options.folder is not None and handle not in ready:
        shutil.rmtree(options.folder, ignore_errors=True)
    return code if code >= 0 else 128 - code


def _remove_containers(docker: str, which: str) -> None:
    def run(*words: str) -> str:
        return subprocess.run(
            [docker, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=_END_TIMEOUT_S,
            check=False,
        ).stdout

    if found := run("ps", "--all", "--quiet", "--filter", which).split():
        run("rm", "--force", "--volumes", *found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
