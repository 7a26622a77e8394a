"""The trial of Python mutants covers every guard module, keeps its results, and accepts no outdated excuse."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.logstore.mutants import mutants as java_mutants
from tests.mutants.campaign import Campaign, excuses, modules
from tests.mutants.running import OURS, ROOT

MODULE, TESTS = "safewriter/parsing.py", "tests/unit/safewriter/test_parsing.py"
COMMAND = "import sys; sys.path.insert(0, '.'); import runpy; runpy.run_module('tests.mutants', run_name='__main__')"


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-P", "-c", COMMAND, *arguments]
    return subprocess.run(line, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)


def test_each_package_of_the_project_is_imported_anew() -> None:
    """A module of before has classes of its own, which no `except` of a mutant's tests catches."""
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages >= {"handler", "safewriter", "soal"}
    assert packages <= set(OURS)


def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return command(MODULE, "--tests", TESTS, "--folder", str(folder), *more)


@pytest.mark.slow
def test_each_mutant_is_written_down_with_the_test_that_kills_it_and_is_tried_once(tmp_path: Path) -> None:
    """A second run of the same source and tests returns the same result, without a trial."""
    first = run(tmp_path)

    assert first.returncode == 0, first.stderr
    found = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert {(one["file"], one["outcome"]) for one in found} == {(MODULE, "killed")}
    assert all(one["by"].startswith(f"{TESTS}::") for one in found)
    listed = run(tmp_path, "--list").stdout.splitlines()
    assert len(listed) == len(found)
    assert all(f"killed ({one['by']})" in line for one, line in zip(found, listed, strict=True))
    found[0]["change"] = "a change of the source that is not there any more"
    found[1]["line"] = -1  # it stays if no new trial runs
    found[2]["line"], found[2]["tests"] = -1, "of a test that has changed since"
    (tmp_path / "results.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in found))
    assert run(tmp_path).returncode == 0
    again = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert sorted(one["line"] for one in again)[:2] == [-1, found[0]["line"]]


def test_each_excuse_is_for_a_mutant_of_the_guard(tmp_path: Path) -> None:
    """An excuse whose code has changed or was deleted is outdated, and each excuse has a reason."""
    campaign = Campaign(modules(["safewriter"]), tmp_path, beside_each_other=1, seconds=1)

    assert campaign.stale_excuses() == []
    assert all(one.reason for one in excuses())


def test_every_module_is_selected_with_spark_or_without() -> None:
    """Each module is selected once, so `--spark` is never needed for a module that tests without Spark can judge."""
    without, with_spark, every = modules(), modules(spark=True), modules(["safewriter"])

    assert sorted(without + with_spark) == every
    assert [one for one in with_spark if "/iceberg/" in one] == ["safewriter/tables/iceberg/session.py"]
    assert modules(["safewriter/settle/recovery.py"]) == ["safewriter/settle/recovery.py"]


@pytest.mark.parametrize("mirrored", ["safewriter/tables/delta/readback.py", "safewriter/settle/recovery.py"])
def test_a_module_has_mutants(mirrored: str, tmp_path: Path) -> None:
    """A generator that finds no mutant would let everything pass."""
    assert len(Campaign([mirrored], tmp_path, beside_each_other=1, seconds=1).candidates) > 20


def test_the_log_store_s_mutants_are_those_of_its_list() -> None:
    """`--java` takes the mutants of all classes or of some."""
    of_two = command("--java", "--list", "Statement", "Block")

    assert of_two.returncode == 0, of_two.stderr
    listed = [str(one) for one in java_mutants(Path()) if one.of in ("Statement", "Block")]
    assert of_two.stdout.splitlines() == listed != []
