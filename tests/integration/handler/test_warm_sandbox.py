"""One warm function, job after job: each leaves everything that it can, and the next one finds a clean place."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from handler.outcome.result import Result
from scripts.emulator.rie import LambdaEmulator
from soal.testing.s3 import EmbeddedS3
from tests.support.kept import of_jobs
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.emulator, pytest.mark.slow]

CHECKPOINTS, SCRIPTS = "checkpoints", "scripts"
SIZE_MB = 400
PROBE = """
import os, sys
for folder, directories, files in os.walk(sys.argv[1]):
    directories[:] = sorted(name for name in directories if not name.startswith("soal-"))
    print("has", sorted(files), directories)
space = os.statvfs(sys.argv[1])
print("free", space.f_bavail * space.f_frsize >> 20)
"""
FILES = """
import os, sys
open(sys.argv[1] + "/large", "wb").write(bytes(100 << 20))
os.makedirs(sys.argv[1] + "/locked/inner")
open(sys.argv[1] + "/locked/inner/file", "w").close()
os.chmod(sys.argv[1] + "/locked/inner", 0)
os.chmod(sys.argv[1] + "/locked", 0)
os.mkfifo(sys.argv[1] + "/pipe")
open(os.path.dirname(os.environ["TMPDIR"]) + "/.soal-sandbox", "w").write("mine")
"""
LINKS = """
import os, sys
root = os.path.dirname(os.environ["TMPDIR"])
os.symlink(sys.argv[2], sys.argv[1] + "/link")
os.symlink(sys.argv[2], root + "/link")
os.rename(root, sys.argv[1] + "/moved")
os.symlink(sys.argv[2], root)
os.symlink(sys.argv[2], sys.argv[1] + "/soal-link")
"""
PROCESSES = """
import os, subprocess, sys, time
code = '''
import os, sys, time
os.fork() and os._exit(0)
os.setsid()
while True:
    open(sys.argv[1] + "/written", "a").write("x")
    time.sleep(0.01)
'''
subprocess.Popen([sys.executable, "-c", code, sys.argv[1]], start_new_session=True)
while not os.path.exists(sys.argv[1] + "/written"): time.sleep(0.01)
"""
FULL_DISK = """
import sys
with open(sys.argv[1] + "/full", "wb", buffering=0) as file:
    try:
        while True: file.write(bytes(1 << 20))
    except OSError as error:
        print(error.strerror)
"""
DELETES = """
import os, shutil
shutil.rmtree(os.path.dirname(os.environ["TMPDIR"]), ignore_errors=True)
"""
LEAVING = {"files": FILES, "links": LINKS, "processes": PROCESSES, "full_disk": FULL_DISK, "deletes": DELETES}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    """A small disk of the function's own."""
    place = tmp_path / "own"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", str(place)], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here, so no job may fill it: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_the_job_after_five_that_leave_what_they_can_is_as_the_first(own: Path, tmp_path: Path) -> None:
    """Files, links to others' places, processes, a full disk, a deleted directory: nothing reaches the next job."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x", encoding="utf-8")
    (own / "of-an-extension").write_text("x", encoding="utf-8")
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS]) as s3:
        for name, text in {"probe": PROBE, **LEAVING}.items():
            s3.observer().put_object(Bucket=SCRIPTS, Key=f"{name}.py", Body=text.encode())
        variables = {
            **s3.environment(),
            "SOAL_JIT": "c1",
            "SW_CHECKPOINT_BUCKET": CHECKPOINTS,
            "TMPDIR": str(own),
            "SOAL_OWN_DIRECTORIES": str(own),
        }
        with LambdaEmulator(variables, timeout_s=BUSY_S, memory_mb=1536) as emulator:

            def run(name: str) -> Result:
                event = {"script": f"s3://{SCRIPTS}/{name}.py", "entryPointArguments": [str(own), str(outside)]}
                answer = emulator.invoke(event)
                document = answer.payload if answer.error is None else json.loads(answer.error.message)
                return Result.model_validate(document)

            first = run("probe")
            for name in LEAVING:
                left = run(name)
                assert left.run_id is not None, left.state_details
                # Java ends in its own ways with the full disk and the deleted directory.
                assert left.state == "SUCCESS" or name in ("full_disk", "deletes", "links"), left.state_details
            last = run("probe")
            still = of_jobs(emulator.processes())
    assert (first.state, last.state) == ("SUCCESS", "SUCCESS")
    assert first.log_tail[0] == "has ['.soal-ground', 'of-an-extension'] []"
    assert last.log_tail[0] == first.log_tail[0]
    free = [int(result.log_tail[-1].split()[1]) for result in (first, last)]
    assert abs(free[0] - free[1]) <= 1
    assert last.warnings == first.warnings
    assert os.listdir(outside) == ["keep"]  # noqa: PTH208 - names only
    assert still == set()
