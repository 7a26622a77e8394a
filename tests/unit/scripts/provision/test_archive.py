"""Set-up trains the class-data archive once, and again when Java, jars or the training change."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from handler.spark.archive import archive_of
from scripts.provision.archive import ensure_archive
from scripts.provision.java import Java
from scripts.provision.place import Place

if TYPE_CHECKING:
    from pathlib import Path

TRAINING = (
    "image/archive/train.py",
    "image/archive/closures.txt",
    "scripts/image/closures.py",
    "image/logstore/src/main/java/io/soal/build/Closures.java",
)
# Replaces the training's Python: counts its calls, and makes the archive unless it shall fail.
PYTHON = """#!/bin/sh
echo call >> "{calls}"
if [ -e "{fail}" ]; then echo "no lesson today"; exit 1; fi
echo archive > "$4/spark.jsa"
"""


class Bench:
    def __init__(self, root: Path) -> None:
        self.place = Place(root)
        self.calls, self.fail = root / "calls", root / "fail"
        for name in (*TRAINING, "scripts/image/training.py", "scripts/image/unsigned.py", ".soal/jars/delta.jar"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).touch()
        self.executable(self.place.python, PYTHON.format(calls=self.calls, fail=self.fail))
        self.java = Java(root / "java", "17.0.15")
        self.executable(self.java.java, "#!/bin/sh\nexit 0\n")

    @staticmethod
    def executable(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o755)

    def trained(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_it_is_trained_once(bench: Bench) -> None:
    """The second run finds the archive, and does not train."""
    assert ensure_archive(bench.place, bench.java).changed
    assert archive_of(bench.place.home).is_file()
    assert not ensure_archive(bench.place, bench.java).changed
    assert bench.trained() == 1


@pytest.mark.parametrize("changed", [*TRAINING, ".soal/jars/delta.jar", ".soal/spark.jsa"])
def test_what_it_depends_on_trains_it_again(bench: Bench, changed: str) -> None:
    """A change of the training's files, of a jar's time stamp (which Java compares) or of the archive retrains."""
    ensure_archive(bench.place, bench.java)
    path = bench.place.root / changed
    if path.suffix == ".jar":
        os.utime(path, (1, 1))
    else:
        path.write_text("changed")
    assert ensure_archive(bench.place, bench.java).changed
    assert bench.trained() == 2


def test_our_own_jars_may_change(bench: Bench) -> None:
    """Our own jars may change: they come after the archived ones on the class path."""
    ensure_archive(bench.place, bench.java)
    (bench.place.jars / "soal-logstore.jar").touch()
    assert not ensure_archive(bench.place, bench.java).changed


def test_another_java_trains_it_again(bench: Bench) -> None:
    """Another Java retrains, since an archive belongs to one build of Java."""
    ensure_archive(bench.place, bench.java)
    assert ensure_archive(bench.place, Java(bench.java.home, "17.0.16")).changed


def test_a_failed_training_is_told_and_does_not_stop_set_up(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """A failed training is reported and does not stop set-up; the next one tries again, and no stale archive stays."""
    ensure_archive(bench.place, bench.java)
    (bench.place.root / "image/archive/train.py").write_text("changed")
    bench.fail.touch()
    assert ensure_archive(bench.place, bench.java).text == "no class-data archive"
    assert "no lesson today" in capsys.readouterr().err
    assert not archive_of(bench.place.home).exists()
    bench.fail.unlink()
    assert ensure_archive(bench.place, bench.java).text == "class-data archive trained"
    assert bench.trained() == 3


def test_a_java_without_a_base_archive_trains_none(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """A Java without a base archive cannot train; set-up says so before it spends a minute."""
    bench.java.java.write_text("#!/bin/sh\nexit 1\n")
    assert ensure_archive(bench.place, bench.java).text == "no class-data archive"
    assert bench.trained() == 0
    assert "its Java has no archive of its own" in capsys.readouterr().err
