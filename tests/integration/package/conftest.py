"""The wheel, built once, and the folder into which it is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="package")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the build system of pyproject.toml, at the locked version."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-P", "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="package")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which it is installed; pip has installed its dependencies into this Python's environment."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(folder)]
    subprocess.run([*pip, str(wheel)], check=True, timeout=120)
    return folder
