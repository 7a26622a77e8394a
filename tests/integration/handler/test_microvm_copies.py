"""Two MicroVMs of one snapshot, as two forks of one warmed handler: memory, clock and random bytes are the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from scripts.provision.place import ROOT
from soal.testing.s3 import EmbeddedS3

if TYPE_CHECKING:
    from pathlib import Path


RUN = """
import json, os, sys, time
from pathlib import Path
from handler.microvm.job import Jobs
from handler.microvm.lifecycle import Call
from handler.microvm.warm_up import WarmUp
from handler.services import Services
from safewriter import entropy
from safewriter.identity import Attempt
from tests.unit.handler.world import EVENT, World

bucket, tmp, ids = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
os.urandom = lambda size: bytes([7]) * size
warm = entropy._POOL._state

class Copy(World):
    def start_child(self, command, output, **others):
        driver = os.fork()  # of a process that has imported everything, as the fork server's
        if driver == 0:
            entropy._POOL._state = warm  # the fork server has had no event
            time.time_ns = lambda: 1_000_000
            os.environ.update(command.variables)
            print("nonce", Attempt.draw().nonce, flush=True)
            os._exit(0)
        os.waitpid(driver, 0)
        return super().start_child(command, output, **others)

world = Copy(tmp)
services = Services(client=lambda: world, start_child=world.start_child, supervision=lambda *_, **__: world)
jobs = Jobs(
    {**os.environ, "SW_CHECKPOINT_BUCKET": bucket, "TMPDIR": str(tmp)}, 3008, services, WarmUp(tmp),
    terminate=lambda _: None, set_clock=lambda _: None,
)
for microvm_id in ids:
    if os.fork():
        os.wait()
        continue
    event = json.dumps({**EVENT, "clientToken": microvm_id})
    jobs.run(Call(microvm_id, event))
    sys.stdout.flush()
    os._exit(0)
"""


def test_two_copies_with_an_event_each_leave_both_results(tmp_path: Path) -> None:
    """Neither run ids nor nonces are shared, in the handler and in the job's own process."""
    command = [sys.executable, "-P", "-c", RUN, "checkpoints", str(tmp_path), "mvm-1", "mvm-2"]
    with EmbeddedS3(buckets=["checkpoints"]) as s3:
        environment = {**os.environ, **s3.environment(), "PYTHONPATH": str(ROOT)}
        printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        keys = [key for key in s3.keys("checkpoints") if key.endswith("/run_result.json")]
        bodies = [json.loads(s3.observer().get_object(Bucket="checkpoints", Key=key)["Body"].read()) for key in keys]
    nonces = [line for line in printed.splitlines() if line.startswith("nonce ")]
    assert len(set(nonces)) == len(nonces) == 2, printed
    assert len(keys) == 4, printed
    assert len({body["runId"] for body in bodies}) == 2
    assert {body["clientToken"] for body in bodies} == {"mvm-1", "mvm-2"}
    assert {body["state"] for body in bodies} == {"SUCCESS"}
