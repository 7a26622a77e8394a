"""GitHub's workflows, read as files: they run existing scripts, their actions are pinned, and zizmor finds nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values())


def commands(path: Path) -> list[str]:
    """Return the commands of the jobs, those of a matrix included."""
    found = [step["run"] for job in jobs(path) for step in job["steps"] if "run" in step]
    for job in jobs(path):
        found += [each["command"] for each in job.get("strategy", {}).get("matrix", {}).get("include", ())]
    return [command for command in found if not command.startswith(("${{", "npx "))]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_what_anybody_can_run(path: Path) -> None:
    """Each command is a script of the repository, or is made by set-up."""
    for command in commands(path):
        word = command.split()[0]
        assert word == ".venv/bin/soal" or (ROOT / word).stat().st_mode & 0o100, command


@pytest.mark.parametrize("name", ["bug", "question"])
def test_an_issue_template_asks_something(name: str) -> None:
    """A template has a name, a description and fields with ids, as GitHub needs; questions require an answer."""
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text(encoding="utf-8"))
    assert form["name"]
    assert form["description"]
    assert all(field["id"] and field["attributes"]["label"] for field in form["body"])
    assert form["body"][0]["validations"]["required"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_an_action_is_pinned_by_its_commit(path: Path) -> None:
    """Actions are pinned by commit. The workflow has no permissions; each job declares its own."""
    used = [step["uses"] for job in jobs(path) for step in job["steps"] if "uses" in step]
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one)] == []
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["permissions"] == {}
    assert all(job["permissions"] == {"contents": "read"} and job["timeout-minutes"] for job in jobs(path))


def test_every_night_takes_all_mutants() -> None:
    """The nightly run includes all mutants of the guard, with and without Spark, and of the log store."""
    nightly = commands(ROOT / ".github" / "workflows" / "nightly.yml")
    assert {"scripts/mutants", "scripts/mutants --spark", "scripts/mutants --java"} <= set(nightly)


def test_the_audit_holds_nothing_else_up() -> None:
    """The audit is a separate job, for each change and every night, so that it does not block other checks."""
    audits = [job for path in WORKFLOWS for job in jobs(path) if {"run": "scripts/audit"} in job["steps"]]
    commands_of = [[step["run"].split()[0] for step in job["steps"] if "run" in step] for job in audits]
    assert commands_of == [["scripts/setup", "scripts/audit"]]
    assert "scripts/audit" in commands(ROOT / ".github" / "workflows" / "nightly.yml")


def test_zizmor_finds_nothing() -> None:
    """Zizmor finds no injection, no persisted credential and no excessive permission."""
    zizmor = Path(sys.executable).with_name("zizmor")
    done = subprocess.run(
        [zizmor, "--offline", "--no-progress", ROOT / ".github"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
