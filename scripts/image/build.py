"""The Dockerfile -> an image, by BuildKit."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from handler.spark.missing_dependencies import SLIM
from scripts.image.base import DOCKERFILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from handler.spark.missing_dependencies import Variant
    from scripts.image.docker import Docker

__all__ = ["BUILDER", "TAG", "Build", "build", "derive", "tag_of"]

TAG: Final = "soal"
BUILDER: Final = "-builder"
"""The suffix of an image's name for the stage that has the tools of its build."""
_TIMEOUT_S: Final = 3600
_GIT_TIMEOUT_S: Final = 10


@dataclass(frozen=True, slots=True)
class Build:
    """A build. `certificates`: a PEM file to trust while building, for a network that ends TLS itself."""

    base: str
    tag: str = TAG
    certificates: Path | None = None
    platform: str | None = None
    target: str | None = None
    variant: Variant = SLIM

    def arguments(self, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
        """Return the words behind `docker build` but for the network's."""
        root = DOCKERFILE.parent
        secret = () if self.certificates is None else ("--secret", f"id=ca,src={self.certificates}")
        target = () if self.target is None else ("--target", self.target)
        platform = () if self.platform is None else ("--platform", self.platform)
        proxies = [name for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY") if environ.get(name)]
        return (
            *("--file", str(DOCKERFILE), "--tag", self.tag, "--build-arg", f"BASE={self.base}"),
            *("--build-arg", f"VARIANT={self.variant}"),
            *("--build-arg", f"VERSION={version('soal')}", "--build-arg", f"REVISION={_revision(root)}"),
            *(word for name in proxies for word in ("--build-arg", name)),
            *secret,
            *target,
            *platform,
            str(root),
        )


def tag_of(variant: Variant) -> str:
    """Return the name of an image that is given no other."""
    return TAG if variant == SLIM else f"{TAG}-{variant}"


def build(docker: Docker, wanted: Build) -> None:
    """Build, with BuildKit's progress on stderr. Raises `DockerError` if it fails."""
    docker.show("build", *_network(docker), *wanted.arguments(), timeout_s=_TIMEOUT_S)


def derive(docker: Docker, image: Build, folder: Path, tag: str) -> None:
    """Build `image`, the stage that has the tools of its build, and on both of them the Dockerfile in `folder`."""
    builder = f"{image.tag}{BUILDER}"
    build(docker, image)
    build(docker, replace(image, tag=builder, target="builder"))
    names = ("--tag", tag, "--build-arg", f"IMAGE={image.tag}", "--build-arg", f"BUILDER={builder}")
    docker.show("build", *_network(docker), *names, str(folder), timeout_s=_TIMEOUT_S)


def _network(docker: Docker) -> tuple[str, ...]:
    """Return the network options: a daemon of our own has no bridge, so a build has the host's network, or none."""
    return ("--network", "host") if docker.is_own else ()


def _revision(root: Path) -> str:
    """Return the commit, for the image's label; `+` says that the tree has changes of its own."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    command = [git, "-C", str(root), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"
