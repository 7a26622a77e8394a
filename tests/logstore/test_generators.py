"""Java's random generators after a start from a snapshot (io.soal.host.Generators)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from handler.spark.jvm_options import MODULE_OPTIONS
from scripts.provision.place import ROOT
from tests.logstore.jvm import SOURCES, compile_into, jars, java

if TYPE_CHECKING:
    from pathlib import Path

_HOST = SOURCES / "io" / "soal" / "host"
_DRAWS = ROOT / "tests" / "logstore" / "java" / "io" / "soal" / "host" / "Draws.java"


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generators")
    compile_into(folder, [_HOST / "Generators.java", _HOST / "Hidden.java", _DRAWS])
    return folder


def draws(classes: Path, outside: str) -> dict[str, str]:
    class_path = ":".join(map(str, (classes, *jars())))
    lines = java(*MODULE_OPTIONS, "-cp", class_path, "io.soal.host.Draws", outside)
    return dict(line.split(" ") for line in lines)


def test_copies_of_a_jvm_draw_equal_values_only_if_they_are_given_equal_bytes(classes: Path) -> None:
    """The kernel gives all of these copies the same bytes. The second copy shows that nothing else tells them apart."""
    one, again, other = (draws(classes, outside) for outside in ("run-1", "run-1", "run-2"))
    assert one == again
    assert len(one) == 5
    assert [name for name in one if one[name] == other[name]] == []
