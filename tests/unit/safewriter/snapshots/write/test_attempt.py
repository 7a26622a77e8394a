"""An attempt at a build has a gate for its tasks if they run on the driver's machine."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.snapshots.config import OutputOptions, WriteConfig
from safewriter.snapshots.write import attempt
from safewriter.snapshots.write.attempt import BuildAttempt, begin

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize(
    ("master", "runs_here"),
    [
        ("local", True),
        ("local[*]", True),
        ("local[2,3]", True),
        ("local-cluster[2,1,900]", False),
        ("spark://localhost:7077", False),
        ("yarn", False),
    ],
)
def test_tasks_have_a_gate_where_they_run_on_the_driver_s_machine(
    master: str, *, runs_here: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On others they would not find its file, and take the build for over."""

    @contextmanager
    def alone(*_: object) -> Iterator[BuildAttempt]:
        unused: Any = None
        yield BuildAttempt(unused, lambda _: "")

    monkeypatch.delenv("SW_CHECKPOINT_BUCKET", raising=False)
    monkeypatch.setattr(attempt, "_alone", alone)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master=master))
    config = WriteConfig(num_dbs=1, s3_prefix="s3://lake/kv", output=OutputOptions(local_root=tmp_path))
    with begin(spark, config, None) as begun:
        assert (begun.gate is not None) is runs_here
        assert begun.gate is None or Path(begun.gate).parent.parent == tmp_path
    assert list(tmp_path.iterdir()) == []
