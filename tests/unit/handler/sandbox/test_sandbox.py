"""A job's sandbox under /tmp is private, fresh, and removed afterwards, whatever a job has left or linked there."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handler.sandbox.sandbox import _LABEL, NoSpaceError, forbids_execution, open_sandbox


def test_a_fresh_private_directory(tmp_path: Path) -> None:
    """It has mode 0700 and empty folders, and is removed at the end."""
    with open_sandbox(tmp_path) as sandbox:
        assert stat.S_IMODE(sandbox.root.stat().st_mode) == 0o700
        assert [list(place.iterdir()) for place in (sandbox.scripts, sandbox.home, sandbox.tmp, sandbox.work)] == [
            []
        ] * 4
        (sandbox.scripts / "job.py").write_text("x", encoding="utf-8")
        first = sandbox.root
    assert not first.exists()
    with open_sandbox(tmp_path) as sandbox:
        assert not (sandbox.scripts / "job.py").exists()
        assert sandbox.root != first


def test_it_goes_also_after_an_error(tmp_path: Path) -> None:
    """The next job on a warm machine finds nothing of a failed job."""
    with pytest.raises(ZeroDivisionError), open_sandbox(tmp_path):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_job_cannot_keep_its_files_by_taking_permissions_away(tmp_path: Path) -> None:
    """Read-only directories are removed, too."""
    with open_sandbox(tmp_path) as sandbox:
        locked = sandbox.work / "a" / "b"
        locked.mkdir(parents=True)
        (locked / "file").write_text("x", encoding="utf-8")
        locked.chmod(0o500)
        locked.parent.chmod(0)
    assert list(tmp_path.iterdir()) == []


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    """Their targets do not belong to the job."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").touch()
    base = tmp_path / "base"
    base.mkdir()
    with open_sandbox(base) as sandbox:
        (sandbox.work / "link").symlink_to(outside)
        (sandbox.root / "link").symlink_to(outside)
    assert (outside / "keep").exists()


def test_a_job_that_puts_a_link_in_the_place_of_its_directory_loses_nobody_a_file(tmp_path: Path) -> None:
    """The directory is emptied where the job moved it, and the link is removed without its target."""
    outside, base = tmp_path / "outside", tmp_path / "base"
    outside.mkdir()
    base.mkdir()
    (outside / "keep").touch()
    with open_sandbox(base) as sandbox:
        (sandbox.work / "large").touch()
        sandbox.root.rename(tmp_path / "moved")
        sandbox.root.symlink_to(outside)
    assert (outside / "keep").exists()
    assert list(base.iterdir()) == []
    assert list((tmp_path / "moved").iterdir()) == []


def test_a_link_among_the_leftovers_is_not_followed(tmp_path: Path) -> None:
    """This holds even if its target looks like the directory of a dead request."""
    outside, base = tmp_path / "outside", tmp_path / "base"
    outside.mkdir()
    base.mkdir()
    (outside / ".soal-sandbox").write_bytes(_LABEL)
    (outside / "keep").touch()
    (base / "soal-link").symlink_to(outside)
    with open_sandbox(base):
        pass
    assert (outside / "keep").exists()


def test_a_directory_that_only_looks_like_ours_is_left_alone(tmp_path: Path) -> None:
    """It may be a foreign directory with a similar name and its own lock file, or with other content as a label."""
    for name, lock in (("soal-thesis", ".lock"), ("soal-notes", ".soal-sandbox")):
        (tmp_path / name).mkdir()
        (tmp_path / name / lock).touch()
        (tmp_path / name / "chapter").touch()
    (tmp_path / "soal-pipe").mkdir()
    os.mkfifo(tmp_path / "soal-pipe" / ".soal-sandbox")
    with open_sandbox(tmp_path):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"soal-thesis", "soal-notes", "soal-pipe"}
    assert len(list(tmp_path.glob("*/chapter"))) == 2


def test_a_fresh_sandbox_bears_its_label_only_when_it_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another emulator that starts at any step in between removes nothing."""
    flock, write, rename = fcntl.flock, os.write, os.rename
    seen: list[Any] = []

    def looked_at(step: Any) -> Any:
        def stepped(*arguments: Any, **options: Any) -> Any:
            if seen.count(step) == 0:
                seen.append(step)
                with open_sandbox(tmp_path):
                    pass
            return step(*arguments, **options)

        return stepped

    monkeypatch.setattr(fcntl, "flock", looked_at(flock))
    monkeypatch.setattr(os, "write", looked_at(write))
    monkeypatch.setattr(os, "rename", looked_at(rename))
    with open_sandbox(tmp_path) as sandbox:
        assert sandbox.work.is_dir()
        assert seen == [flock, write, rename]
        with open_sandbox(tmp_path):
            assert sandbox.work.is_dir()


def test_leftovers_of_the_dead_are_removed_and_places_of_the_living_kept(tmp_path: Path) -> None:
    """A process killed in its sandbox leaves it behind; a living process holds its lock."""
    code = f"""
import os, pathlib
from handler.sandbox.sandbox import open_sandbox
with open_sandbox(pathlib.Path({str(tmp_path)!r})) as sandbox:
    os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[4], check=False)
    (leftover,) = tmp_path.iterdir()
    (tmp_path / "soal-not-ours").mkdir()
    with open_sandbox(tmp_path) as living:
        assert not leftover.exists()
        with open_sandbox(tmp_path):
            assert living.root.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["soal-not-ours"]


def test_what_cannot_be_removed_in_time_is_said_and_left_to_the_next_job(tmp_path: Path) -> None:
    """A job may leave more than can be removed before the deadline. If the next one cannot remove it either, it still
    works in another directory.
    """
    said: list[str] = []
    with open_sandbox(tmp_path, may_go_on=lambda: False, warn=said.append) as first:
        (first.work / "a" / "b").mkdir(parents=True)
    assert first.root.exists()
    with open_sandbox(tmp_path, warn=said.append) as second:
        assert not first.root.exists()
        assert list(second.work.iterdir()) == []
    assert said == [f"{first.root} could not be removed in time: the next job gets another directory, and removes it"]


def test_a_job_begins_although_there_was_no_time_to_remove_what_another_has_left(tmp_path: Path) -> None:
    """A warning says what is left, and the next job removes that."""
    said: list[str] = []
    with open_sandbox(tmp_path, may_go_on=lambda: False) as first:
        (first.work / "a" / "b").mkdir(parents=True)
    with open_sandbox(tmp_path, may_go_on=lambda: False, warn=said.append) as second:
        assert said == [
            f"{first.root} is what an earlier job has left, and could not be removed in time: the next job will"
        ]
        assert second.root != first.root
    with open_sandbox(tmp_path) as third:
        assert list(tmp_path.iterdir()) == [third.root]


def test_a_sandbox_that_was_not_emptied_in_time_is_none_for_the_next_job(tmp_path: Path) -> None:
    """This holds even if the time ends just when nothing is left, since that was not checked again."""
    with open_sandbox(tmp_path, free_min_mb=0) as sandbox:
        (sandbox.work / "left").mkdir()
        assert not sandbox.renew(sandbox.shape, lambda: False)
        assert (sandbox.work / "left").exists()
        assert sandbox.renew(sandbox.shape, lambda: True)


def test_too_little_space_is_said(tmp_path: Path) -> None:
    """The error has the numbers, the largest entries there, and the remedy."""
    (tmp_path / "left").mkdir()
    (tmp_path / "left" / "by a job").write_bytes(b"x" * (3 << 20))
    (tmp_path / "small").touch()
    said = r"MB free of \d+ MB, .*most of it is taken by 'left' \(3 MB\)\. Raise the function's ephemeral storage"
    with pytest.raises(NoSpaceError, match=said), open_sandbox(tmp_path, free_min_mb=10**9):
        pass
    (tmp_path / "left" / "by a job").unlink()
    with pytest.raises(NoSpaceError, match="nothing of an earlier run"), open_sandbox(tmp_path, free_min_mb=10**9):
        pass


def test_a_place_that_forbids_execution_is_known(tmp_path: Path) -> None:
    """The mount option shows it: libraries that Java unpacks there could not be loaded. /proc is such a place."""
    options = next(line.split()[3] for line in Path("/proc/mounts").read_text().splitlines() if " /proc " in line)
    assert forbids_execution(Path("/proc")) is ("noexec" in options.split(","))
    assert not forbids_execution(tmp_path)


def test_a_label_that_is_a_link_makes_no_leftover(tmp_path: Path) -> None:
    """The link is not followed, and the directory stays."""
    (tmp_path / "target").write_bytes(_LABEL)
    left = tmp_path / "base" / "soal-x"
    left.mkdir(parents=True)
    (left / ".soal-sandbox").symlink_to(tmp_path / "target")
    with open_sandbox(tmp_path / "base"):
        assert left.exists()


def test_another_user_s_sandbox_is_left_alone(tmp_path: Path) -> None:
    """Its owner may still need it."""
    if os.getuid() != 0:
        pytest.skip("only root can give a directory away")
    left = tmp_path / "soal-x"
    left.mkdir()
    (left / ".soal-sandbox").write_bytes(_LABEL)
    os.chown(left, 65534, 65534)
    with open_sandbox(tmp_path):
        assert left.exists()


@pytest.mark.parametrize("place", [".", "tmp", "scripts", ".soal-sandbox"])
def test_a_directory_with_extended_attributes_is_not_the_one_that_was_made(tmp_path: Path, place: str) -> None:
    """The attributes would stay for the next job, as files would."""
    with open_sandbox(tmp_path, free_min_mb=0) as sandbox:
        made = sandbox.shape
        assert sandbox.renew(made, lambda: True)
        os.setxattr(sandbox.root / place, "user.left", b"for the next job")
        assert not sandbox.renew(made, lambda: True)


def test_a_file_system_without_extended_attributes_is_as_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job cannot leave anything in them there."""

    def none(*_: object, **__: object) -> list[str]:
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(os, "listxattr", none)
    with open_sandbox(tmp_path, free_min_mb=0) as sandbox:
        assert sandbox.renew(sandbox.shape, lambda: True)
