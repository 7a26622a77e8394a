"""The container image: `cdk deploy` builds it from the repository's Dockerfile, or it exists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from aws_cdk import Aws
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecr_assets as assets
from aws_cdk import aws_lambda as lambda_

if TYPE_CHECKING:
    from constructs import Construct

    from infra.config import Config
    from infra.places import ImageUri

_REPOSITORY: Final = Path(__file__).resolve().parent.parent
_PLATFORMS: Final = {"x86_64": assets.Platform.LINUX_AMD64, "arm64": assets.Platform.LINUX_ARM64}
_ARCHITECTURES: Final = {"x86_64": lambda_.Architecture.X86_64, "arm64": lambda_.Architecture.ARM_64}


class Image:
    """One image for all functions of the stack; each function sets its entry as the image's command."""

    def __init__(self, scope: Construct, config: Config) -> None:
        self.architecture = _ARCHITECTURES[config.architecture]
        self._platform = _PLATFORMS[config.architecture]
        self._repository = None if config.image_uri is None else _repository(scope, config.image_uri)
        self._uri = config.image_uri
        self._variant = config.image_variant

    def code(self, command: str) -> lambda_.DockerImageCode:
        """Return the code of a function whose entry is `command`, such as `handler.app.lambda_handler`."""
        if self._repository is not None and self._uri is not None:
            return lambda_.DockerImageCode.from_ecr(self._repository, cmd=[command], tag_or_digest=self._uri.reference)
        # .dockerignore lists the sources of the image; these folders must stay out even without it.
        return lambda_.DockerImageCode.from_image_asset(
            str(_REPOSITORY),
            build_args={"VARIANT": self._variant},
            cmd=[command],
            platform=self._platform,
            exclude=[".git", ".soal", ".venv", "cdk.out"],
        )


def _repository(scope: Construct, uri: ImageUri) -> ecr.IRepository:
    arn = f"arn:{Aws.PARTITION}:ecr:{uri.region}:{uri.account}:repository/{uri.repository}"
    return ecr.Repository.from_repository_attributes(
        scope, "Repository", repository_arn=arn, repository_name=uri.repository
    )
