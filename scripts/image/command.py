"""`soal image …`: build, test and measure the function's container image on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from handler.spark.missing_dependencies import SLIM
from scripts.image.build import Build, choose_base, pin_base, tag_of
from scripts.image.build import build as build_image
from scripts.image.build import derive as derive_image
from scripts.image.docker import require, with_docker
from scripts.image.microvm import bundle
from scripts.image.sbom import inventory
from scripts.image.size import measure, size_view
from scripts.provision.place import ROOT, Place
from soal.console.output import Output
from soal.console.problem import EXIT_FAILED, Problem
from soal.home import Home
from soal.options import ImageVariant, Json

app = typer.Typer(no_args_is_help=True, help="Build, test and measure the function's image.")

_TESTS: Final = ("tests/image", "--ignore=tests/image/derived")
Tag = Annotated[str | None, typer.Option(help="The image's name; default: soal, or soal-full.")]
Base = Annotated[
    str | None,
    typer.Option(help="The image to build on, or `debootstrap` to make one here; default: the Dockerfile's."),
]
Certificates = Annotated[
    Path | None, typer.Option(help="A PEM file to trust while building; default: the file that SSL_CERT_FILE names.")
]


@app.command()
def build(
    base: Base = None,
    tag: Tag = None,
    variant: ImageVariant = SLIM,
    platform: Annotated[str | None, typer.Option(help="linux/amd64 or linux/arm64; default: this machine's.")] = None,
    ca: Certificates = None,
) -> None:
    """Build the image. The first build takes minutes; later ones rebuild only what changed."""
    out = Output(as_json=False)
    name = tag or tag_of(variant)
    with with_docker(Home.of()) as docker:
        base_name = choose_base(docker, base, Place(ROOT), out.remark, platform)
        build_image(docker, Build(base_name, name, certificates(ca), platform=platform, variant=variant))
    chosen_by = "" if variant == SLIM else f" --variant {variant}"
    out.remark(f"built {name} on {base_name}; test it with: soal image test{chosen_by}")


@app.command()
def derive(
    folder: Annotated[
        Path, typer.Argument(help="The folder of a Dockerfile that adds to the image; see image/derived.")
    ],
    tag: Annotated[str, typer.Option(help="The name of the new image.")],
    base: Base = None,
    variant: ImageVariant = SLIM,
    ca: Certificates = None,
) -> None:
    """Build an image with additions: jars, Python packages."""
    out = Output(as_json=False)
    if not (folder / "Dockerfile").is_file():
        raise Problem(f"{folder}: there is no Dockerfile", todo="copy image/derived and change it")
    with with_docker(Home.of()) as docker:
        base_name = choose_base(docker, base, Place(ROOT), out.remark)
        image = Build(base_name, tag_of(variant), certificates(ca), variant=variant)
        derive_image(docker, image, folder, tag)
    out.remark(f"built {tag} on {image.tag}; try it with: soal local invoke --docker --image {tag}")


def certificates(option: Path | None) -> Path | None:
    """Return the file of certificates to trust while building. Raises `Problem` if it does not exist."""
    variable = os.environ.get("SSL_CERT_FILE")
    path = option or (Path(variable) if variable else None)
    if path is not None and not path.is_file():
        raise Problem(f"{path}: no such file", todo="give --ca a PEM file, or leave it out")
    return path


@app.command("test", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def prove(context: typer.Context, tag: Tag = None, variant: ImageVariant = SLIM) -> None:
    """Test the image: jobs under Lambda's limits, the archive, the features. This takes minutes.

    Other arguments go to pytest.
    """
    name = tag or tag_of(variant)
    with with_docker(Home.of()) as docker:
        require(docker, name)
        command = [sys.executable, "-P", "-m", "pytest", "-m", "image", *(context.args or _TESTS)]
        environment = {**docker.environment, "IMAGE_UNDER_TEST": name}
        process = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    if process.returncode != 0:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def size(tag: Tag = None, variant: ImageVariant = SLIM, *, as_json: Json = False) -> None:
    """Show the image's size above its base, by layer and by part; exit code 1 if it is above its limit."""
    name = tag or tag_of(variant)
    with with_docker(Home.of()) as docker:
        require(docker, name)
        image_size = measure(docker, name)
    Output(as_json=as_json).show(size_view(image_size))
    if not image_size.is_within_limit:
        raise typer.Exit(EXIT_FAILED)


@app.command()
def sbom(tag: Tag = None, variant: ImageVariant = SLIM) -> None:
    """Print the image's components, as a CycloneDX document in JSON."""
    name = tag or tag_of(variant)
    with with_docker(Home.of()) as docker:
        require(docker, name)
        sys.stdout.write(json.dumps(inventory(docker, name), indent=2) + "\n")


@app.command()
def microvm(
    image: Annotated[str, typer.Argument(help="The function's image, by its name in ECR with the digest.")],
    output: Annotated[Path, typer.Option(help="The zip file to write.")] = Path("soal-microvm.zip"),
) -> None:
    """Write the zip file from which Lambda builds a MicroVM image on top of the function's image."""
    try:
        body = bundle(image)
    except ValueError as error:
        raise Problem(str(error), todo="give the image's name, as docker would pull it") from None
    output.write_bytes(body)
    Output(as_json=False).remark(f"wrote {output}; put it into a bucket of the region: docs/guides/microvm.md")


@app.command()
def pin() -> None:
    """Write the current digest of the default base into the Dockerfile; review and commit the change."""
    with with_docker(Home.of()) as docker:
        base = pin_base(docker)
    Output(as_json=False).remark(f"the Dockerfile builds on {base}")
