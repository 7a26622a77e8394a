from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from safewriter.snapshots.write.folders import task_folder

if TYPE_CHECKING:
    from pathlib import Path

_KILLED = """
import os, sys
from pathlib import Path
from safewriter.snapshots.write.folders import task_folder
with task_folder(Path(sys.argv[1])) as folder:
    (folder / "0").mkdir()
    (folder / "0" / "shard.db").touch()
    os.kill(os.getpid(), 9)
"""


def test_the_folder_of_a_killed_task_goes_with_the_next_one(tmp_path: Path) -> None:
    """Spark kills the Python process of a task that it cancels."""
    root = tmp_path / "tasks"
    subprocess.run([sys.executable, "-c", _KILLED, str(root)], check=False)
    (left,) = root.iterdir()
    with task_folder(root) as folder:
        assert list(root.iterdir()) == [folder]
        assert folder != left
    assert list(root.iterdir()) == []


def test_the_folder_of_a_living_task_stays(tmp_path: Path) -> None:
    """Tasks of one machine share the root; what is no task's stays, too."""
    (tmp_path / "of-somebody-else").mkdir()
    with task_folder(tmp_path) as one, task_folder(tmp_path) as two:
        (one / "shard.db").touch()
        with task_folder(tmp_path):
            assert (one / "shard.db").exists()
            assert two.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["of-somebody-else"]
