"""Two copies of one process, which a memory snapshot makes that is restored twice: memory, clock and random bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from scripts.provision.place import ROOT

if TYPE_CHECKING:
    from tests.contract.bench import Bench

CLAIM = """
import os, sys, time
os.urandom = lambda size: bytes([7]) * size
time.time_ns = lambda: 1_000_000
from safewriter.entropy import renew, unique_id
from safewriter.identity import Attempt
from safewriter.objects.location import Location
from safewriter.objects.s3 import open_store
from safewriter.record.checkpoints import Checkpoints
from tests.unit.safewriter.record.samples import attempt, document
for request_id in sys.argv[2:]:
    if os.fork():
        os.wait()
        continue
    renew(request_id)
    nonce = Attempt.draw().nonce
    mine = document(owner=nonce, attempts=(attempt(nonce=nonce, run_id=unique_id()),))
    claimed = Checkpoints(open_store(Location.parse(sys.argv[1]))).create(mine)
    print(nonce, "owns" if claimed else "does not", flush=True)
    os._exit(0)
"""


def claims(s3: Bench, *request_ids: str) -> list[str]:
    command = [sys.executable, "-P", "-c", CLAIM, f"s3://{s3.lake}", *request_ids]
    environment = {**os.environ, **s3.server.environment(), "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.splitlines()


def test_copies_that_nothing_from_outside_tells_apart_take_each_other_s_document_for_their_own(s3: Bench) -> None:
    """Equal bytes are one's own: the rule that the next test relies on, and the reason for `safewriter.entropy`."""
    first, second = claims(s3, "request", "request")
    assert first == second
    assert first.endswith(" owns")


def test_of_two_copies_with_an_event_each_one_owns_the_write(s3: Bench) -> None:
    """Each event has an id of its own, which is in all that the process draws from then on."""
    first, second = (line.split(" ", 1) for line in claims(s3, "request-1", "request-2"))
    assert first[0] != second[0]
    assert (first[1], second[1]) == ("owns", "does not")
