"""The handler restores its own directories after each job, such as /tmp, to their state before the first job."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from handler.sandbox.between_jobs import OwnedDirectory, clean_all

ROOT = Path(__file__).parents[4]


def always() -> bool:
    return True


def names(path: Path) -> set[str]:
    return {one.name for one in path.iterdir()} - {".soal-ground"}


def leave_everything(path: Path, outside: Path) -> None:
    """Create all that a job can leave: files, folders without rights, links, pipes, sockets, depth, non-text names."""
    (path / "file").write_text("x", encoding="utf-8")
    (path / "locked" / "inner").mkdir(parents=True)
    (path / "locked" / "inner" / "file").touch()
    (path / "locked" / "inner").chmod(0)
    (path / "locked").chmod(0)
    (path / "link").symlink_to(outside)
    (path / "dangling").symlink_to(outside / "nowhere")
    (path / "folder").mkdir()
    (path / "folder" / "link").symlink_to(outside)
    os.mkfifo(path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(path, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
    Path(os.fsdecode(bytes(path) + b"/\xff\xfe")).touch()
    deep = os.open(path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=deep)
        inner = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = inner
    os.close(deep)


@pytest.mark.slow
def test_a_directory_is_as_it_was_before_the_first_job(tmp_path: Path) -> None:
    """Old entries stay, new ones are removed, and nothing outside is touched."""
    own, outside = tmp_path / "own", tmp_path / "outside"
    (own / "extension" / "cache").mkdir(parents=True)
    (own / "extension" / "cache" / "file").touch()
    outside.mkdir()
    (outside / "keep").touch()
    ground = OwnedDirectory.claim(own)
    for _ in range(2):
        leave_everything(own, outside)
        (own / "extension" / "cache" / "new").touch()
        own.chmod(0o500)
        assert ground.clean(always) == 0
        assert names(own) == {"extension"}
        assert names(own / "extension" / "cache") == {"file"}
    assert names(outside) == {"keep"}


def test_a_kept_directory_that_was_replaced_by_a_link_is_not_followed(tmp_path: Path) -> None:
    """The link is removed; its target belongs to someone else."""
    own, outside = tmp_path / "own", tmp_path / "outside"
    (own / "kept").mkdir(parents=True)
    outside.mkdir()
    (outside / "keep").touch()
    ground = OwnedDirectory.claim(own)
    (own / "kept").rmdir()
    (own / "kept").symlink_to(outside)
    ground.clean(always)
    assert names(own) == set()
    assert names(outside) == {"keep"}


def test_a_process_that_follows_a_killed_one_knows_what_that_one_had_found(tmp_path: Path) -> None:
    """Lambda restarts the runtime after a kill; files of the killed job must not count as old."""
    (tmp_path / "old").touch()
    code = f"""
import os, pathlib
from handler.sandbox.between_jobs import OwnedDirectory
OwnedDirectory.claim(pathlib.Path({str(tmp_path)!r}))
pathlib.Path({str(tmp_path)!r}, "left").touch()
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert names(tmp_path) == {"old", "left"}
    OwnedDirectory.claim(tmp_path).clean(always)
    assert names(tmp_path) == {"old"}


@pytest.mark.parametrize("record", [b"", b"{", b"[1]", b'{"left": 1}', json.dumps({"a": None}).encode()])
def test_what_a_job_makes_of_the_record_does_not_count(tmp_path: Path, record: bytes) -> None:
    """After each job the record is restored from this process's own lists."""
    (tmp_path / "old").touch()
    ground = OwnedDirectory.claim(tmp_path)
    (tmp_path / ".soal-ground").write_bytes(record)
    (tmp_path / "left").touch()
    ground.clean(always)
    assert names(tmp_path) == {"old"}
    assert set(json.loads((tmp_path / ".soal-ground").read_bytes())["entries"]) == {"old", ".soal-ground"}


def test_a_directory_that_is_in_use_or_not_there_is_left_alone(tmp_path: Path) -> None:
    """Another process may be using it; and an undeclared directory is never cleaned."""
    (tmp_path / "own").mkdir()
    ground = OwnedDirectory.claim(tmp_path / "own")
    with pytest.raises(BlockingIOError):
        OwnedDirectory.claim(tmp_path / "own")
    (said,) = clean_all((tmp_path / "own", tmp_path / "nowhere"), always)
    assert said.startswith(f"{tmp_path / 'own'} is not cleaned between jobs: ")
    assert ground.clean(always) == 0


def test_a_directory_that_holds_the_handler_is_nobody_s_to_clean() -> None:
    """A declaration of / or a home is a mistake."""
    for path in (Path("/"), ROOT, ROOT / "handler"):
        with pytest.raises(PermissionError, match="holds the handler itself"):
            OwnedDirectory.claim(path)


def test_a_claim_that_fails_gives_the_lock_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise this process could never claim the directory again."""
    with monkeypatch.context() as broken:
        broken.setattr("handler.sandbox.shared_memory.present", lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            OwnedDirectory.claim(tmp_path)
    OwnedDirectory.claim(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("lost", [True, False])
def test_what_a_killed_job_has_left_deep_down_harms_nobody(tmp_path: Path, *, lost: bool) -> None:
    """The job may have removed or forged the record, and may leave a tree that JSON cannot hold."""
    leave_everything(tmp_path, tmp_path)
    if not lost:
        (tmp_path / ".soal-ground").write_text('{"a":' * 400 + "null" + "}" * 400, encoding="ascii")
    ground = OwnedDirectory.claim(tmp_path)
    (tmp_path / "left").touch()
    ground.clean(always)
    assert "left" not in names(tmp_path)


def test_cleaning_that_has_no_time_left_says_so(tmp_path: Path) -> None:
    """The next request removes the rest; a warning says so."""
    assert list(clean_all((tmp_path,), always)) == []
    (tmp_path / "left").touch()
    reason = "there was no time left, so the next job may find files of this one"
    assert list(clean_all((tmp_path,), lambda: False)) == [f"{tmp_path} is not cleaned between jobs: {reason}"]
    assert names(tmp_path) == {"left"}


def test_what_cannot_be_removed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run gets a warning with their number."""
    assert list(clean_all((tmp_path,), always)) == []
    (tmp_path / "stuck").touch()

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "unlink", refuse)
    assert list(clean_all((tmp_path,), always)) == [f"1 entries that a job has left in {tmp_path} could not be removed"]


def test_a_mount_in_a_directory_is_not_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies there is another file system's, or another place's of this one."""
    assert list(clean_all((tmp_path,), always)) == []
    inside = tmp_path / "mounted" / "theirs"
    inside.parent.mkdir()
    inside.touch()
    monkeypatch.setattr(
        "handler.sandbox.removal._mount", lambda handle: Path(f"/proc/self/fd/{handle}").readlink().name == "mounted"
    )
    assert list(clean_all((tmp_path,), always)) == [f"1 entries that a job has left in {tmp_path} could not be removed"]
    assert inside.exists()


def test_shared_memory_that_a_job_has_left_goes_and_what_was_there_before_stays(tmp_path: Path) -> None:
    """A segment outlives its process and would carry one job's data to the next; so would semaphores and queues."""
    libc = ctypes.CDLL(None, use_errno=True)
    ask = {
        "shm": lambda number: libc.shmctl(number, 2, ctypes.create_string_buffer(512)),
        "sem": lambda number: libc.semctl(number, 0, 12, 0),  # GETVAL
        "msg": lambda number: libc.msgctl(number, 2, ctypes.create_string_buffer(512)),
    }
    private, mode = 0, 0o1600
    old = libc.shmget(private, 4096, mode)
    assert old >= 0
    try:
        ground = OwnedDirectory.claim(tmp_path)
        new = {
            "shm": libc.shmget(private, 4096, mode),
            "sem": libc.semget(private, 1, mode),
            "msg": libc.msgget(private, mode),
        }
        assert all(ask[kind](number) >= 0 for kind, number in new.items())
        ground.clean(always)
        assert [kind for kind, number in new.items() if ask[kind](number) >= 0] == []
        assert ask["shm"](old) == 0
    finally:
        libc.shmctl(old, 0, None)


def test_shared_memory_of_a_job_whose_handler_was_killed_goes(tmp_path: Path) -> None:
    """The next process has the killed one's lists; those of an earlier boot are ignored."""
    libc = ctypes.CDLL(None, use_errno=True)
    code = f"""
import ctypes, os, pathlib
from handler.sandbox.between_jobs import OwnedDirectory
OwnedDirectory.claim(pathlib.Path({str(tmp_path)!r}))
print(ctypes.CDLL(None).shmget(0, 4096, 0o1600), flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, text=True)
    left = int(done.stdout)
    try:
        record = tmp_path / ".soal-ground"
        body = record.read_text()
        record.write_text(json.dumps({**json.loads(body), "boot": "another"}))
        (other := OwnedDirectory.claim(tmp_path)).clean(always)
        assert ("shm", left) in other.shared
        os.close(other.handle)
        record.write_text(body)
        OwnedDirectory.claim(tmp_path).clean(always)
        assert libc.shmctl(left, 2, ctypes.create_string_buffer(512)) < 0
    finally:
        libc.shmctl(left, 0, None)


def test_a_record_that_is_no_tree_is_not_believed(tmp_path: Path) -> None:
    """The directory is listed instead."""
    (tmp_path / "old").touch()
    (tmp_path / ".soal-ground").write_bytes(b'{"left": 1}')
    assert set(OwnedDirectory.claim(tmp_path).entries) == {"old", ".soal-ground"}


def test_a_record_of_another_user_is_not_believed(tmp_path: Path) -> None:
    """Only root can test this."""
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    (tmp_path / "left").touch()
    record = tmp_path / ".soal-ground"
    record.write_bytes(b"{}")
    os.chown(record, 65534, 65534)
    assert set(OwnedDirectory.claim(tmp_path).entries) == {"left", ".soal-ground"}
