"""Build an image with BuildKit, on the Dockerfile's default base, a named base, or a base made by debootstrap.

The last is for machines that reach Debian's packages but no image registry. It is a small base with Python, and cannot
show how AWS's base differs. It stays because the image tests have run on no other base so far.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from handler.spark.missing_dependencies import SLIM
from scripts.image.docker import DockerError
from scripts.provision.place import ROOT
from scripts.provision.steps import run
from soal.console.problem import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from handler.spark.missing_dependencies import Variant
    from scripts.image.docker import Docker
    from scripts.provision.place import Place

DEBOOTSTRAP: Final = "debootstrap"
"""The value of `--base` for the base made by debootstrap."""
MADE: Final = "soal-base:debian12"
"""The base made by debootstrap; for another platform than the machine's its name ends with that."""
DOCKERFILE: Final = ROOT / "Dockerfile"
_DEFAULT: Final = re.compile(r"^ARG BASE=(\S+)$", re.MULTILINE)
_SYSTEM: Final = "amzn 2023"
"""The system of AWS's images for Python 3.12 and newer."""
_LOOK: Final = """
import platform, sys
system = platform.freedesktop_os_release()
print(system.get("ID"), system.get("VERSION_ID"), "python:%d.%d" % sys.version_info[:2])
"""
_SUITE: Final = "bookworm"
_PACKAGES: Final = "ca-certificates,python3"
_NOT_NEEDED: Final = ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache/apt", "var/lib/apt/lists")
_PULL_TIMEOUT_S: Final = 600
_PACK_TIMEOUT_S: Final = 600
_LOOK_TIMEOUT_S: Final = 60


def default_base(dockerfile: Path = DOCKERFILE) -> str:
    """Return the base that the Dockerfile names."""
    match = _DEFAULT.search(dockerfile.read_text(encoding="utf-8"))
    if match is None:
        raise ValueError(f"{dockerfile} has no line 'ARG BASE=…'")
    return match[1]


def pin_base(docker: Docker) -> str:
    """Pull the Dockerfile's base by its tag and append the digest; return the new name.

    It is the digest of the index, so it covers x86_64 and arm64. Raises `DockerError` if the pull fails.
    """
    tagged = default_base().partition("@")[0]
    docker.read("pull", "--quiet", tagged, timeout_s=_PULL_TIMEOUT_S)
    _examine(docker, tagged)
    digests = json.loads(docker.read("image", "inspect", "--format", "{{json .RepoDigests}}", tagged))
    text = pinned(DOCKERFILE.read_text(encoding="utf-8"), tagged, digests)
    DOCKERFILE.write_text(text, encoding="utf-8")
    return default_base()


def pinned(text: str, tagged: str, digests: list[str]) -> str:
    """Return a Dockerfile's text with the digest of `tagged` (`repository:tag`), chosen from `digests`."""
    repository = tagged.rpartition(":")[0]
    matches = [digest for name, _, digest in (entry.partition("@") for entry in digests) if name == repository]
    if not matches:
        raise DockerError(f"docker knows no digest of {tagged}: {digests}")
    return _DEFAULT.sub(f"ARG BASE={tagged}@{matches[0]}", text, count=1)


def choose_base(
    docker: Docker, name: str | None, place: Place, say: Callable[[str], None], platform: str | None = None
) -> str:
    """Return the name of a base that the daemon has or can pull.

    `name` None chooses the Dockerfile's default, or debootstrap's if the pull fails; `platform` (linux/arm64) None is
    this machine's. Raises `Failure` if there is no base.
    """
    if name == DEBOOTSTRAP:
        return _make_base(docker, place, say, platform)
    base = name or default_base()
    if not docker.has(base):
        try:
            docker.read("pull", "--quiet", base, timeout_s=_PULL_TIMEOUT_S)
        except DockerError as error:
            if name is not None:
                raise
            say(f"the base {base} cannot be pulled ({_last_line(error)}); building on one made by debootstrap")
            return _make_base(docker, place, say, platform)
    if name is None:
        _examine(docker, base)
    return base


def _examine(docker: Docker, base: str) -> None:
    """Refuse a default base that does not match its tag: Docker ignores the tag beside a digest."""
    way = ("run", "--rm", "--network", "none", "--entrypoint", "python3")
    system = docker.read(*way, base, "-c", _LOOK, timeout_s=_LOOK_TIMEOUT_S).strip()
    tagged = base.partition("@")[0].rpartition("/")[2]
    if system != f"{_SYSTEM} {tagged}":
        raise DockerError(
            f"the base {base} is not what {DOCKERFILE.name} says: expected {_SYSTEM} {tagged}, found {system};"
            " take the tag's current digest (soal image pin), or name another base (--base)"
        )


def _make_base(docker: Docker, place: Place, say: Callable[[str], None], platform: str | None) -> str:
    architecture = "" if platform is None else platform.rpartition("/")[2]
    made = f"{MADE}-{architecture}" if architecture else MADE
    if docker.has(made):
        return made
    if shutil.which("debootstrap") is None or os.geteuid() != 0:
        raise Failure(
            "a base can be made only as root, and by debootstrap on the path",
            todo="install it (Debian: apt install debootstrap), or give --base an image with Python 3.11 or newer that"
            " can be pulled",
        )
    say(f"making the base {made}: Debian's {_SUITE} with Python (a minute, once)")
    with place.scratch() as scratch:
        tree = scratch / "root"
        of = [f"--arch={architecture}"] if architecture else []
        run(
            ["debootstrap", *of, "--variant=minbase", f"--include={_PACKAGES}", _SUITE, tree],
            act="making a base by debootstrap",
            todo="check the network and Debian's mirror, and, for another architecture, that this machine runs its"
            " programs (Debian: apt install qemu-user-static), then try again",
        )
        for folder in _NOT_NEEDED:
            shutil.rmtree(tree / folder, ignore_errors=True)
            (tree / folder).mkdir(parents=True)
        _pack(docker, tree, made, platform)
    return made


def _pack(docker: Docker, tree: Path, made: str, platform: str | None) -> None:
    """Make an image of a tree. `docker import` would do, but old daemons record their own platform for it."""
    context = tree.parent / "context"
    context.mkdir()
    run(
        ["tar", "--create", "--numeric-owner", "--file", context / "root.tar", "--directory", tree, "."],
        act="packing the base",
        todo="make room in .soal, then try again",
    )
    (context / "Dockerfile").write_text("FROM scratch\nADD root.tar /\n", encoding="utf-8")
    of = () if platform is None else ("--platform", platform)
    docker.show("build", *of, "--tag", made, str(context), timeout_s=_PACK_TIMEOUT_S)


def _last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1][:300]


TAG: Final = "soal"
BUILDER: Final = "-builder"
"""The suffix of an image's name for the stage with the build tools."""
_TIMEOUT_S: Final = 3600
_GIT_TIMEOUT_S: Final = 10


@dataclass(frozen=True, slots=True)
class Build:
    """A build. `certificates`: a PEM file to trust during the build, for networks that intercept TLS."""

    base: str
    tag: str = TAG
    certificates: Path | None = None
    platform: str | None = None
    target: str | None = None
    variant: Variant = SLIM

    def arguments(self, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
        """Return the arguments of `docker build`, except for the network."""
        root = DOCKERFILE.parent
        secret = () if self.certificates is None else ("--secret", f"id=ca,src={self.certificates}")
        target = () if self.target is None else ("--target", self.target)
        platform = () if self.platform is None else ("--platform", self.platform)
        proxies = [name for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY") if environ.get(name)]
        return (
            *("--file", str(DOCKERFILE), "--tag", self.tag, "--build-arg", f"BASE={self.base}"),
            *("--build-arg", f"VARIANT={self.variant}"),
            *("--build-arg", f"VERSION={version('soal')}", "--build-arg", f"REVISION={revision(root)}"),
            *(word for name in proxies for word in ("--build-arg", name)),
            *secret,
            *target,
            *platform,
            str(root),
        )


def tag_of(variant: Variant) -> str:
    """Return the default name of a variant's image."""
    return TAG if variant == SLIM else f"{TAG}-{variant}"


def build(docker: Docker, image: Build) -> None:
    """Build an image, with BuildKit's progress on stderr. Raises `DockerError` if it fails."""
    docker.show("build", *_network(docker), *image.arguments(), timeout_s=_TIMEOUT_S)


def derive(docker: Docker, image: Build, folder: Path, tag: str) -> None:
    """Build `image`, the stage with the build tools, and on top of both the Dockerfile in `folder`."""
    builder = f"{image.tag}{BUILDER}"
    build(docker, image)
    build(docker, replace(image, tag=builder, target="builder"))
    names = ("--tag", tag, "--build-arg", f"IMAGE={image.tag}", "--build-arg", f"BUILDER={builder}")
    docker.show("build", *_network(docker), *names, str(folder), timeout_s=_TIMEOUT_S)


def _network(docker: Docker) -> tuple[str, ...]:
    """Return the network options. Our own daemon has no bridge, so a build gets the host's network."""
    return ("--network", "host") if docker.is_own else ()


def revision(root: Path) -> str:
    """Return the commit for the image's label; a trailing `+` means uncommitted changes."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    command = [git, "-C", str(root), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False)
    return process.stdout.strip() if process.returncode == 0 else "unknown"
