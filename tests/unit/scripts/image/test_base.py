from __future__ import annotations

import pytest

from scripts.image.base import default_base, pinned
from scripts.image.docker import DockerError

TEXT = "# a\nARG BASE=a.b/c/python:3.13\nFROM ${BASE}\n"


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
