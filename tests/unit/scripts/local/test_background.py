"""`soal local up` and `down` keep one local S3 in the background: second starts, taken ports, stale state files."""

from __future__ import annotations

import os
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import psutil
import pytest
from botocore.exceptions import EndpointConnectionError

from scripts.local.background import ensure_down, ensure_up, log_of_run
from scripts.local.inventory import content
from scripts.local.sample import JOBS
from soal.console.problem import Problem
from soal.home import Home
from soal.local.names import BUCKETS
from soal.local.state import LocalS3, running
from soal.target import local_target
from tests.support.processes import has_ended

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path / "soal")
    yield made
    ensure_down(made)


def test_up_twice_is_up_once_and_down_ends_it(home: Home) -> None:
    """The second `up` finds the first one's process, with the samples; after `down` the port is closed."""
    first, is_new = ensure_up(home, port=0, buckets=["mine"])
    again, is_new_again = ensure_up(home, port=0, buckets=[])
    assert (is_new, is_new_again) == (True, False)
    assert first == again == running(home)
    client = local_target(first.endpoint).client()
    counts = {bucket.name: bucket.objects for bucket in content(client)}
    assert set(counts) == {*BUCKETS, "mine"}
    assert counts["soal-scripts"] == len(list(JOBS.glob("*.py")))
    assert counts["soal-data"] == 1
    assert ensure_down(home) == first
    assert running(home) is None
    assert not home.state.exists()
    assert not psutil.pid_exists(first.pid) or psutil.Process(first.pid).status() == psutil.STATUS_ZOMBIE
    with pytest.raises(EndpointConnectionError):
        client.list_buckets()


def test_down_deletes_the_logs_of_runs(home: Home) -> None:
    """Each run has one, whatever its key holds; other logs stay."""
    logs = [log_of_run(home, key) for key in ("nightly", "../../nightly")]
    home.log.parent.mkdir(parents=True)
    for path in (*logs, home.log):
        path.touch()
    assert {path.parent for path in logs} == {home.log.parent}
    ensure_down(home)
    assert list(home.log.parent.iterdir()) == [home.log]


def test_two_at_once_start_one(home: Home) -> None:
    """Two concurrent commands start one process."""
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: ensure_up(home, port=0, buckets=[]), range(2)))
    assert both[0][0] == both[1][0]
    assert sorted(is_new for _, is_new in both) == [False, True]


def test_another_port_bucket_or_catalog_than_the_running_one_is_a_problem(home: Home) -> None:
    """A request for options other than the running ones is an error."""
    state, _ = ensure_up(home, port=0, buckets=[])
    with pytest.raises(Problem, match=state.endpoint):
        ensure_up(home, port=9, buckets=[])
    with pytest.raises(Problem, match="another"):
        ensure_up(home, port=0, buckets=["another"])
    with pytest.raises(Problem, match="without an Iceberg catalog"):
        ensure_up(home, port=0, buckets=[], iceberg=True)


def test_a_port_that_is_taken_is_a_problem(home: Home) -> None:
    """If the port is taken, the command fails with a message and leaves no state file."""
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(Problem) as caught:
        ensure_up(home, port=taken.getsockname()[1], buckets=[])
    assert caught.value.exit_code == 1
    assert running(home) is None


@pytest.mark.parametrize("started", [0.0, 1.0])
def test_a_process_id_that_was_given_to_another_process_is_stale(home: Home, started: float) -> None:
    """A live process with another start time is not the server; `down` does not touch it."""
    home.path.mkdir()
    LocalS3(pid=os.getpid(), started=started, endpoint="http://127.0.0.1:1", buckets=()).write(home.state)
    assert running(home) is None
    assert ensure_down(home) is None
    assert not home.state.exists()


@pytest.mark.parametrize("text", ["", "{", '{"pid": 1}', "[]"])
def test_a_damaged_state_file_is_stale(home: Home, text: str) -> None:
    """An unreadable state file counts as not running."""
    home.path.mkdir()
    home.state.write_text(text, encoding="utf-8")
    assert running(home) is None


def test_down_kills_what_does_not_end(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """`down` also kills the server's child processes, such as the catalog's JVM."""
    monkeypatch.setattr("scripts.local.background._END_TIMEOUT_S", 0.2)
    home.path.mkdir()
    with subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 600 & echo; wait"], stdout=subprocess.PIPE) as deaf:
        assert deaf.stdout is not None
        deaf.stdout.readline()
        process = psutil.Process(deaf.pid)
        both = [process, *process.children()]
        state = LocalS3(pid=deaf.pid, started=process.create_time(), endpoint="http://127.0.0.1:1", buckets=())
        state.write(home.state)
        assert ensure_down(home) == state
    assert all(has_ended(one) for one in both)


def test_down_without_up_does_nothing(home: Home) -> None:
    """`down` without a running server is no error."""
    assert ensure_down(home) is None
