"""The handler finds System V shared memory that this user made and nobody uses any more."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from handler.sandbox.shared_memory import present

if TYPE_CHECKING:
    from pathlib import Path


def test_only_what_this_user_has_made_and_nobody_uses(tmp_path: Path) -> None:
    """On a developer's machine, a database of the same user is attached to its segment; other users' objects stay."""
    me = os.geteuid()
    (tmp_path / "sysvipc").mkdir()
    (tmp_path / "sysvipc" / "shm").write_text(
        "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid\n"
        f"         0          7  1600                  4096    11    11      0  {me}    0  {me}     0\n"
        f"         0          8  1600                  4096    11    11      2  {me}    0  {me}     0\n"
        f"         0          9  1600                  4096    11    11      0  {me}    0  {me + 1}     0\n",
        encoding="ascii",
    )
    (tmp_path / "sysvipc" / "sem").write_text("key semid perms nsems uid gid cuid cgid\n", encoding="ascii")
    assert present(tmp_path) == {("shm", 7)}


def test_a_kernel_without_such_objects_has_none(tmp_path: Path) -> None:
    """Then the files do not exist."""
    assert present(tmp_path) == frozenset()
