"""What npm installs here is locked: exactly which packages, by their sums, and from no address."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from scripts.provision.place import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LOCKS = sorted(path for folder in ("docs", "scripts") for path in (ROOT / folder).rglob("npm-shrinkwrap.json"))


def shown(path: Path) -> str:
    return str(path.parent.relative_to(ROOT))


@pytest.mark.parametrize("lock", LOCKS, ids=shown)
def test_each_package_of_npm_has_its_sum_and_no_address(lock: Path) -> None:
    """A lock says what is installed, never from where, and holds the versions that its package.json names."""
    packages = json.loads(lock.read_text(encoding="utf-8"))["packages"]
    wanted = json.loads((lock.parent / "package.json").read_text(encoding="utf-8"))["dependencies"]
    installed = {name.removeprefix("node_modules/"): package for name, package in packages.items() if name}

    assert {name: installed[name]["version"] for name in wanted} == wanted
    assert all("integrity" in package and "resolved" not in package for package in installed.values())


def test_the_locks_are_those_of_the_command() -> None:
    """`scripts/lock` writes each of them."""
    command = (ROOT / "scripts" / "lock").read_text(encoding="utf-8")

    assert {shown(lock) for lock in LOCKS} == set(re.findall(r"\[\w+\]=([\w/]+)", command))
