"""The image's base is pinned by a digest, and refused if it is not the system and Python that its tag says."""

from __future__ import annotations

import os
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from scripts.image.build import DEBOOTSTRAP, choose_base, default_base, pinned
from scripts.image.docker import Docker, DockerError
from scripts.provision.place import Place
from soal.console.problem import Failure

TEXT = "# a\nARG BASE=a.b/c/python:3.13\nFROM ${BASE}\n"


@dataclass
class Daemon:
    """A fake daemon that has every image, with a given content."""

    says: str
    has_all: bool = True
    ran: list[tuple[str, ...]] = field(default_factory=list)
    packed: list[str] = field(default_factory=list)

    def has(self, _image: str) -> bool:
        return self.has_all

    def read(self, *arguments: str, timeout_s: float) -> str:
        assert timeout_s > 0
        self.ran.append(arguments)
        return self.says

    def show(self, *arguments: str, timeout_s: float) -> None:
        assert timeout_s > 0
        self.ran.append(arguments)
        with tarfile.open(Path(arguments[-1]) / "root.tar") as packed:
            self.packed += packed.getnames()


def chosen(daemon: Daemon, wanted: str | None, folder: Path, platform: str | None = None) -> str:
    return choose_base(cast("Docker", daemon), wanted, Place(folder), lambda _said: None, platform)


def test_a_digest_is_written_behind_the_tag() -> None:
    """The digest of the requested repository is written after the tag, and replaces an older digest."""
    digests = ["other/python@sha256:00", "a.b/c/python@sha256:11"]
    once = pinned(TEXT, "a.b/c/python:3.13", digests)
    assert once == "# a\nARG BASE=a.b/c/python:3.13@sha256:11\nFROM ${BASE}\n"
    assert pinned(once, "a.b/c/python:3.13", ["a.b/c/python@sha256:22"]).count("@sha256:") == 1


def test_a_base_without_a_digest_is_an_error() -> None:
    """An image built locally has no digest, which is an error."""
    with pytest.raises(DockerError, match="no digest"):
        pinned(TEXT, "a.b/c/python:3.13", [])


def test_the_dockerfile_has_a_default_base() -> None:
    """The commands can read the Dockerfile's default base."""
    assert ":" in default_base()


def test_the_pinned_base_is_what_its_tag_says(tmp_path: Path) -> None:
    """System and Python of the pinned base are checked against its tag, since a digest could name any image."""
    daemon = Daemon("amzn 2023 python:3.13\n")
    assert chosen(daemon, None, tmp_path) == default_base()
    ((command, *words),) = daemon.ran
    assert command == "run"
    assert words[words.index("--network") + 1] == "none"
    assert default_base() in words


@pytest.mark.parametrize("says", ["debian 12 python:3.13\n", "amzn 2023 python:3.12\n", ""])
def test_a_base_that_is_not_what_its_tag_says_is_refused(tmp_path: Path, says: str) -> None:
    """The error names the base, what was found, and what to do; a base that the user names is not checked."""
    with pytest.raises(DockerError, match=r"expected amzn 2023 python:3\.13, found .*soal image pin"):
        chosen(Daemon(says), None, tmp_path)
    assert chosen(Daemon(says), "mine:1", tmp_path) == "mine:1"


def test_a_base_is_not_made_by_a_program_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without debootstrap the error names its package, and nothing is installed."""
    apt = tmp_path / "apt-get"
    apt.write_text('#!/bin/sh\n: > "$0.called"\n')
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(Failure, match="debootstrap") as caught:
        chosen(Daemon("", has_all=False), DEBOOTSTRAP, tmp_path / "clone")
    assert "apt install debootstrap" in caught.value.todo
    assert [path.name for path in tmp_path.iterdir()] == ["apt-get"]


@pytest.mark.parametrize(
    ("platform", "name", "of"),
    [(None, "soal-base:debian12", ()), ("linux/arm64", "soal-base:debian12-arm64", ("--platform", "linux/arm64"))],
)
def test_a_base_is_made_for_the_platform_of_the_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str | None, name: str, of: tuple[str, ...]
) -> None:
    """Its packages are of that architecture, its image says so, and it has a name of its own."""
    program = tmp_path / "debootstrap"
    program.write_text('#!/bin/sh\necho "$*" > "$0.words"\nfor tree; do :; done\nmkdir -p "$tree/bin"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    daemon = Daemon("", has_all=False)

    assert chosen(daemon, DEBOOTSTRAP, tmp_path / "clone", platform) == name

    words = (tmp_path / "debootstrap.words").read_text().split()
    assert [word for word in words if word.startswith("--arch")] == (["--arch=arm64"] if of else [])
    ((*build, _),) = daemon.ran
    assert build == ["build", *of, "--tag", name]
    assert "./bin" in daemon.packed
