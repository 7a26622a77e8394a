"""`soal image …`: the function's container image, built, proven and measured on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from scripts.image import base as bases
from scripts.image.build import TAG, Build
from scripts.image.build import build as build_image
from scripts.image.size import measure
from scripts.provision.place import Place
from scripts.soal.docker import with_docker
from scripts.soal.local import Json  # noqa: TC001 - typer reads the annotations
from scripts.soal.output import output
from scripts.soal.place import ROOT, Home
from scripts.soal.problem import EXIT_FAILED, Problem

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="The function's container image: built, proven, measured.")

Tag = Annotated[str, typer.Option(help="The image's name.")]
_CERTIFICATES: Final = "SSL_CERT_FILE"


@app.command()
def build(
    base: Annotated[
        str | None,
        typer.Option(help="The image to build on, or `debootstrap` to make one here; without: the Dockerfile's."),
    ] = None,
    tag: Tag = TAG,
    platform: Annotated[str | None, typer.Option(help="linux/amd64 or linux/arm64; without: this machine's.")] = None,
    ca: Annotated[
        Path | None, typer.Option(help="A PEM file to trust while building; without: what SSL_CERT_FILE names.")
    ] = None,
) -> None:
    """Build the image. Some minutes, then what has changed."""
    out = output(is_json=False)
    named = os.environ.get(_CERTIFICATES)
    certificates = ca or (Path(named) if named else None)
    if certificates is not None and not certificates.is_file():
        raise Problem(f"{certificates}: no such file", todo="give --ca a PEM file, or leave it out")
    with with_docker(Home.of()) as found:
        chosen = bases.choose_base(found, base, Place(ROOT), out.remark)
        build_image(found, Build(chosen, tag, certificates, platform=platform))
    out.remark(f"built {tag} on {chosen}; prove it with: soal image test")


@app.command("test", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def prove(context: typer.Context, tag: Tag = TAG) -> None:
    """Prove the image: jobs under Lambda's bounds, the archive, the features. Minutes; other words go to pytest."""
    with with_docker(Home.of()) as found:
        if not found.has(tag):
            raise Problem(f"docker has no image {tag}", todo="build it with: soal image build", exit_code=EXIT_FAILED)
        command = [sys.executable, "-P", "-m", "pytest", "-m", "image", *(context.args or ["tests/image"])]
        environment = {**found.environment, "IMAGE_UNDER_TEST": tag}
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    if done.returncode != 0:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def size(tag: Tag = TAG, *, as_json: Json = False) -> None:
    """How large the image is above its base, by layer and by part; exit code 1 if it is above 600 MB."""
    with with_docker(Home.of()) as found:
        if not found.has(tag):
            raise Problem(f"docker has no image {tag}", todo="build it with: soal image build", exit_code=EXIT_FAILED)
        measured = measure(found, tag)
    output(is_json=as_json).size(measured)
    if not measured.is_within_limit:
        raise typer.Exit(EXIT_FAILED)
