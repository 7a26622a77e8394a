"""The stack builds one container image for both functions, for their architecture and variant."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "platform", "variant"), [("x86_64", "linux/amd64", "slim"), ("arm64", "linux/arm64", "full")]
)
def test_the_image_is_built_once_for_the_functions_architecture(
    tmp_path: Path, architecture: str, platform: str, variant: str
) -> None:
    """Two functions with one Dockerfile share one image of one variant, for the platform on which Lambda runs it."""
    from aws_cdk import Stack
    from aws_cdk import aws_lambda as lambda_

    from infra.app import new_app
    from infra.context import read_context
    from infra.image import Image

    app = new_app(outdir=str(tmp_path))
    stack = Stack(app, "Images")
    image = Image(stack, read_context({"architecture": architecture, "image_variant": variant}))
    for name in ("app", "sweeper"):
        lambda_.DockerImageFunction(
            stack, name, code=image.code(f"handler.{name}.lambda_handler"), architecture=image.architecture
        )
    app.synth()

    template = json.loads((tmp_path / "Images.template.json").read_text())
    functions = [
        each["Properties"] for each in template["Resources"].values() if each["Type"] == "AWS::Lambda::Function"
    ]
    (asset,) = json.loads((tmp_path / "Images.assets.json").read_text())["dockerImages"].values()
    assert {each["Architectures"][0] for each in functions} == {architecture}
    assert asset["source"]["platform"] == platform
    assert asset["source"]["dockerBuildArgs"] == {"VARIANT": variant}
    context = tmp_path / asset["source"]["directory"]
    assert (context / "Dockerfile").is_file()
    assert (context / "handler/app.py").is_file()
    assert {path.name for path in context.iterdir()}.isdisjoint({".git", ".soal", ".venv", "cdk.out", "tests", "infra"})
