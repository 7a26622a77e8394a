"""The image's Dockerfile, read as text: hadolint, pinned versions, copied files, needed modules, no secret."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_import_graph import file_of, reached_from

ROOT = Path(__file__).parents[3]
FILES = ("Dockerfile", "image/derived/Dockerfile")


@pytest.mark.parametrize("name", FILES)
def test_hadolint_has_nothing_to_say(name: str) -> None:
    """Hadolint reports nothing; the Dockerfile itself marks each exception."""
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, ROOT / name], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_example_in_the_comment_is_a_dockerfile() -> None:
    """The example adds only Python packages: four instructions, and no package replaces one of the image's."""
    lines = (ROOT / "image" / "derived" / "Dockerfile").read_text().splitlines()
    text = "\n".join(line.removeprefix("#   ") for line in lines if line.startswith("#   "))
    hadolint = Path(sys.executable).with_name("hadolint")
    command = [str(hadolint), "--ignore", "DL3006", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")
    assert [line.split()[0] for line in text.replace("\\\n", "").splitlines()] == ["FROM", "RUN", "FROM", "COPY"]


def test_an_added_package_keeps_to_the_image_s_versions() -> None:
    """Each install, the example's included, is constrained by the image's lock, which the builder stage contains."""
    builder = (ROOT / "Dockerfile").read_text()
    assert "WORKDIR /build\n" in builder
    assert re.search(r"^COPY .*requirements/runtime\.txt requirements/$", builder, re.MULTILINE)
    assert re.search(r"^COPY requirements/full\.txt requirements/$", builder, re.MULTILINE)
    derived = re.sub(r"\\\n#?", "", (ROOT / "image" / "derived" / "Dockerfile").read_text())
    installs = [line for line in derived.splitlines() if "uv pip install" in line]
    assert len(installs) == 2
    assert all("--constraint /build/requirements/runtime.txt" in line for line in installs)


def test_nothing_secret_is_in_the_image() -> None:
    """No variable or argument has a secret's name, and certificates are mounted, not copied."""
    text = (ROOT / "Dockerfile").read_text()
    for line in re.findall(r"^(?:ENV|ARG) .*", text, re.MULTILINE):
        assert not re.search(r"secret|password|token|key", line, re.IGNORECASE)
    assert not re.search(r"^(?:COPY|ADD) .*\.(?:pem|crt|key)", text, re.MULTILINE)


def test_everything_that_is_copied_is_sent_and_is_there() -> None:
    """Everything that the Dockerfile copies exists, and .dockerignore does not exclude it."""
    sent = [
        line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")
    ]
    copied = [
        word
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
        for word in line.split()
    ]
    assert copied
    for path in copied:
        assert (ROOT / path).exists(), path
        assert any(path == name or path.startswith(f"{name}/") for name in sent), path


@pytest.mark.parametrize("program", ["scripts.image.training", "scripts.image.trim"])
def test_what_the_build_runs_has_all_its_modules(program: str) -> None:
    """The Dockerfile copies every module that a program of the build imports, directly or indirectly."""
    copied = [
        word
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
        for word in line.split()
    ]
    for module in reached_from(program):
        path = file_of(module, ROOT).relative_to(ROOT).as_posix()
        assert any(path == name or path.startswith(f"{name}/") for name in copied), path


def test_the_image_carries_the_labels_of_the_open_container_initiative() -> None:
    """Title, licence, version and commit."""
    text = (ROOT / "Dockerfile").read_text()
    assert set(re.findall(r"org\.opencontainers\.image\.(\w+)=", text)) >= {"title", "licenses", "version", "revision"}
