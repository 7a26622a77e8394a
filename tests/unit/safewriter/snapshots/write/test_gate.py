"""The gate of a build's tasks: behind its end no task uploads, however long its process lives."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from safewriter.snapshots.write.folders import task_folder
from safewriter.snapshots.write.gate import entered, gate

if TYPE_CHECKING:
    from pathlib import Path

OVER = "the build is over"


def test_a_task_passes_while_the_gate_is_open(tmp_path: Path) -> None:
    """Several tasks at once, and one after another."""
    with gate(str(tmp_path)) as opened:
        with entered(str(opened.path)) as first, entered(str(opened.path)) as second:
            first()
            second()
        with entered(str(opened.path)) as third:
            third()
        assert opened.wait_until_empty(0)


def test_a_task_behind_a_shut_gate_uploads_nothing(tmp_path: Path) -> None:
    """Neither one that is inside nor one whose process has just started."""
    with gate(str(tmp_path)) as opened, entered(str(opened.path)) as check:
        opened.shut()
        with pytest.raises(RuntimeError, match=OVER):
            check()
        with pytest.raises(RuntimeError, match=OVER), entered(str(opened.path)):
            raise AssertionError


def test_the_end_of_the_build_shuts_the_gate(tmp_path: Path) -> None:
    """The driver's folder goes, and the gate with it; whether a task is still inside can be asked behind that."""
    with gate(str(tmp_path)) as opened, entered(str(opened.path)):
        pass
    with pytest.raises(RuntimeError, match=OVER), entered(str(opened.path)):
        raise AssertionError
    assert opened.wait_until_empty(0)
    assert list(tmp_path.iterdir()) == []


def test_the_driver_waits_for_an_upload_that_has_begun(tmp_path: Path) -> None:
    """Its object is there when the gate counts as shut, and can be removed."""
    inside, uploaded, done = threading.Event(), threading.Event(), list[str]()

    def upload(path: str) -> None:
        with entered(path) as check:
            check()
            inside.set()
            uploaded.wait(60)
            done.append("uploaded")

    with gate(str(tmp_path)) as opened:
        task = threading.Thread(target=upload, args=[str(opened.path)])
        task.start()
        assert inside.wait(60)
        opened.shut()
        assert not opened.wait_until_empty(0)
        threading.Timer(0, uploaded.set).start()
        assert opened.wait_until_empty(60)
        assert done == ["uploaded"]
        task.join(60)


def test_a_task_that_has_opened_a_gate_before_it_was_shut_is_turned_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets its lock, and sees that the file is gone."""
    with gate(str(tmp_path)) as opened:

        def open_first(path: str, flags: int) -> int:
            found = os.open(path, flags)
            opened.shut()
            assert opened.wait_until_empty(0)
            return found

        monkeypatch.setattr("safewriter.snapshots.write.gate.os", SimpleNamespace(**{**vars(os), "open": open_first}))
        with pytest.raises(RuntimeError, match=OVER), entered(str(opened.path)):
            raise AssertionError


def test_a_gate_lies_in_a_folder_that_the_next_task_removes_if_the_driver_is_dead(tmp_path: Path) -> None:
    """As long as the driver lives, it stays."""
    with gate(str(tmp_path)) as opened, task_folder(str(tmp_path)):
        assert opened.path.exists()


def test_without_a_gate_each_task_passes() -> None:
    """On other machines there is none."""
    with entered(None) as check:
        check()
