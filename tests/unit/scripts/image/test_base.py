from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from scripts.image.build import choose_base, default_base, pinned
from scripts.image.docker import Docker, DockerError
from scripts.provision.place import Place

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "# a\nARG BASE=a.b/c/python:3.13\nFROM ${BASE}\n"


@dataclass
class Daemon:
    """Has each image, and says what is in it."""

    says: str
    ran: list[tuple[str, ...]] = field(default_factory=list)

    def has(self, _image: str) -> bool:
        return True

    def read(self, *arguments: str, timeout_s: float) -> str:
        assert timeout_s > 0
        self.ran.append(arguments)
        return self.says


def chosen(daemon: Daemon, wanted: str | None, folder: Path) -> str:
    return choose_base(cast("Docker", daemon), wanted, Place(folder), lambda _said: None)


def test_a_digest_is_written_behind_the_tag() -> None:
    """Of the repository that is asked for, and in the place of an older one."""
    digests = ["other/python@sha256:00", "a.b/c/python@sha256:11"]
    once = pinned(TEXT, "a.b/c/python:3.13", digests)
    assert once == "# a\nARG BASE=a.b/c/python:3.13@sha256:11\nFROM ${BASE}\n"
    assert pinned(once, "a.b/c/python:3.13", ["a.b/c/python@sha256:22"]).count("@sha256:") == 1


def test_a_base_without_a_digest_is_an_error() -> None:
    """An image that was made here has none."""
    with pytest.raises(DockerError, match="no digest"):
        pinned(TEXT, "a.b/c/python:3.13", [])


def test_the_dockerfile_has_a_default_base() -> None:
    """It can be read by the commands."""
    assert ":" in default_base()


def test_the_pinned_base_is_what_its_tag_says(tmp_path: Path) -> None:
    """A digest alone names any image: system and Python are looked at, without a network."""
    daemon = Daemon("amzn 2023 python:3.13\n")
    assert chosen(daemon, None, tmp_path) == default_base()
    ((command, *words),) = daemon.ran
    assert command == "run"
    assert words[words.index("--network") + 1] == "none"
    assert default_base() in words


@pytest.mark.parametrize("says", ["debian 12 python:3.13\n", "amzn 2023 python:3.12\n", ""])
def test_a_base_that_is_not_what_its_tag_says_is_refused(tmp_path: Path, says: str) -> None:
    """The message names it, what was found, and what to do; a base that the user names is the user's matter."""
    with pytest.raises(DockerError, match=r"expected amzn 2023 python:3\.13, found .*soal image pin"):
        chosen(Daemon(says), None, tmp_path)
    assert chosen(Daemon(says), "mine:1", tmp_path) == "mine:1"
