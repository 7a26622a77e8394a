"""A task of a snapshot's build has a private folder on its executor, and removes those of killed tasks."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.write.folders import task_folder

if TYPE_CHECKING:
    from pathlib import Path

_KILLED = """
import os, sys
from safewriter.snapshots.write.folders import task_folder
with task_folder(sys.argv[1]) as folder:
    (folder / "0").mkdir()
    (folder / "0" / "shard.db").touch()
    os.kill(os.getpid(), 9)
"""


def test_the_folder_of_a_killed_task_goes_with_the_next_one(tmp_path: Path) -> None:
    """Spark kills the Python process of a cancelled task."""
    root = tmp_path / "tasks"
    subprocess.run([sys.executable, "-c", _KILLED, str(root)], check=False)
    (left,) = root.iterdir()
    with task_folder(str(root)) as folder:
        assert list(root.iterdir()) == [folder]
        assert folder != left
    assert list(root.iterdir()) == []


def test_the_folder_of_a_living_task_stays(tmp_path: Path) -> None:
    """The tasks of a machine share the root; other folders there also stay."""
    (tmp_path / "of-somebody-else").mkdir()
    with task_folder(str(tmp_path)) as one, task_folder(str(tmp_path)) as two:
        (one / "shard.db").touch()
        with task_folder(str(tmp_path)):
            assert (one / "shard.db").exists()
            assert two.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["of-somebody-else"]


def test_each_user_has_a_folder_in_the_temporary_directory_of_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's directory may not exist there; other users cannot read the folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with task_folder("") as folder:
        assert folder.parent == tmp_path / f"soal-snapshots-{os.getuid()}"
        assert folder.parent.stat().st_mode & 0o777 == 0o700


def test_a_root_that_cannot_be_written_is_an_error_of_the_setting(tmp_path: Path) -> None:
    """The error names the setting and the path."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigValidationError, match=r"local_root: .*/file"), task_folder(str(tmp_path / "file")):
        raise AssertionError
