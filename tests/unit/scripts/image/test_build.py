"""The build of the image passes labels, certificates and proxies to Docker, on the Dockerfile's default base."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.image.build import Build, default_base, tag_of


def test_a_build_names_its_base_version_and_commit() -> None:
    """Base, version and commit become labels; the build context is the repository."""
    words = Build("some:base").arguments({})
    assert {"BASE=some:base", "VARIANT=slim"} <= set(words)
    assert "VARIANT=full" in Build("some:base", variant="full").arguments({})
    assert (tag_of("slim"), tag_of("full")) == ("soal", "soal-full")
    assert any(word.startswith("VERSION=0.") for word in words)
    assert any(word.startswith("REVISION=") for word in words)
    assert (Path(words[-1]) / "Dockerfile").is_file()
    assert not {"--secret", "--platform"} & set(words)


def test_what_the_network_needs_is_passed_on() -> None:
    """Certificates are passed as a secret, which no layer contains; proxies by name, which the history omits."""
    words = Build("b", certificates=Path("/ca.pem"), platform="linux/arm64").arguments({"HTTPS_PROXY": "http://p"})
    assert "id=ca,src=/ca.pem" in words
    assert "linux/arm64" in words
    assert "HTTPS_PROXY" in words
    assert not any("http://p" in word for word in words)


def test_the_default_base_is_what_the_dockerfile_says(tmp_path: Path) -> None:
    """The default base includes the pinned digest, if any; a Dockerfile without a base is an error."""
    file = tmp_path / "Dockerfile"
    file.write_text("# a\nARG BASE=a.b/c:3@sha256:00\nFROM ${BASE}\n")
    assert default_base(file) == "a.b/c:3@sha256:00"
    file.write_text("FROM scratch\n")
    with pytest.raises(ValueError, match="ARG BASE"):
        default_base(file)
