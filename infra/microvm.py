"""The job's function as a Lambda MicroVM: an image that Lambda builds and takes a snapshot of, and how to start one.

https://docs.aws.amazon.com/lambda/latest/dg/microvms-images.html
https://docs.aws.amazon.com/lambda/latest/dg/microvms-security.html
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from infra.function_role import FunctionRole
from scripts.image.microvm import bundle

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from infra.function_role import Shared
    from infra.places import ImageUri

_BASE: Final = "al2023-1"
_PORT: Final = 9000
"""Of the hooks, as `python -m handler.microvm` serves them."""
_NO_INGRESS: Final = "NO_INGRESS"
"""Who reaches the port of the hooks could start the one job."""
_INTERNET: Final = "INTERNET_EGRESS"


class Microvm(Construct):
    """`launch`: the arguments of RunMicrovm for a job, as JSON, but for the payload."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        shared: Shared,
        *,
        image_uri: ImageUri,
        duration_s: int,
        statements: Iterable[iam.PolicyStatement],
        environment: Mapping[str, str],
    ) -> None:
        super().__init__(scope, name)
        config = shared.config
        with TemporaryDirectory() as folder:  # the asset is a copy
            path = Path(folder, "soal-microvm.zip")
            path.write_bytes(bundle(str(image_uri)))
            code = assets.Asset(self, "Code", path=str(path))
        build = FunctionRole(self, "Build", shared, _build_statements(code, image_uri), network=None)
        job = FunctionRole(self, "Job", shared, statements, network=None)
        for role in (build.role, job.role):
            _let_tag(role)
        image = lambda_.CfnMicrovmImage(
            self,
            "Image",
            # None of them has a default in CloudFormation, also where Lambda has one.
            # A capability would be the job's, too. Without one a wrong clock ends each job with a `ClockError`.
            additional_os_capabilities=[],
            base_image_arn=f"arn:{Aws.PARTITION}:lambda:{Aws.REGION}:aws:microvm-image:{_BASE}",
            base_image_version=config.microvm_base_version,
            build_role_arn=build.role.role_arn,
            code_artifact=lambda_.CfnMicrovmImage.CodeArtifactProperty(uri=code.s3_object_url),
            cpu_configurations=[lambda_.CfnMicrovmImage.CpuConfigurationProperty(architecture="ARM_64")],
            description="SoAL: runs PySpark scripts, guarded, from a snapshot of a started Spark",
            egress_network_connectors=[_connector(_INTERNET)],  # packages of the warm-up's S3 come from PyPI
            environment_variables=[
                lambda_.CfnMicrovmImage.EnvironmentVariableProperty(key=key, value=value)
                for key, value in sorted(environment.items())
            ],
            hooks=_hooks(),
            logging=_logging(build),
            name=config.stack_name,
            resources=[lambda_.CfnMicrovmImage.ResourcesProperty(minimum_memory_in_mib=config.microvm_memory_mb)],
        )
        image.node.add_dependency(build.role)  # its policy, too
        # A MicroVM has no ARN: what happens to one is allowed on its image.
        job.role.add_to_policy(
            iam.PolicyStatement(sid="EndMicrovm", actions=["lambda:TerminateMicrovm"], resources=[image.attr_image_arn])
        )
        self.log_group = job.log_group
        launch: dict[str, Any] = {
            "imageIdentifier": image.attr_image_arn,
            "executionRoleArn": job.role.role_arn,
            "maximumDurationInSeconds": duration_s,
            "ingressNetworkConnectors": [_connector(_NO_INGRESS)],
            "egressNetworkConnectors": [_connector(_INTERNET)],
            "logging": {"cloudWatch": {"logGroup": job.log_group.log_group_name}},
        }
        self.launch = Stack.of(self).to_json_string(launch)


def _connector(name: str) -> str:
    return f"arn:{Aws.PARTITION}:lambda:{Aws.REGION}:aws:network-connector:aws-network-connector:{name}"


def _let_tag(role: iam.Role) -> None:
    """Let Lambda tag its sessions with the role, as it does for MicroVMs."""
    policy = role.assume_role_policy
    if policy is None:
        raise TypeError(f"{role.node.path} has no policy of who may assume it")
    service = iam.ServicePrincipal("lambda.amazonaws.com")
    policy.add_statements(iam.PolicyStatement(actions=["sts:TagSession"], principals=[service]))


def _build_statements(code: assets.Asset, image: ImageUri) -> list[iam.PolicyStatement]:
    repository = f"arn:{Aws.PARTITION}:ecr:{image.region}:{image.account}:repository/{image.repository}"
    pull = ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
    return [
        iam.PolicyStatement(
            sid="ReadCode", actions=["s3:GetObject"], resources=[code.bucket.arn_for_objects(code.s3_object_key)]
        ),
        iam.PolicyStatement(sid="LogInToRegistry", actions=["ecr:GetAuthorizationToken"], resources=["*"]),
        iam.PolicyStatement(sid="PullImage", actions=pull, resources=[repository]),
    ]


def _hooks() -> lambda_.CfnMicrovmImage.HooksProperty:
    """Return the hooks with their time limits in seconds: without one Lambda waits for a second (`handler.microvm`)."""
    on = "ENABLED"
    return lambda_.CfnMicrovmImage.HooksProperty(
        port=_PORT,
        microvm_image_hooks=lambda_.CfnMicrovmImage.MicrovmImageHooksProperty(
            ready=on, ready_timeout_in_seconds=1800, validate=on, validate_timeout_in_seconds=600
        ),
        microvm_hooks=lambda_.CfnMicrovmImage.MicrovmHooksProperty(
            run=on,
            run_timeout_in_seconds=10,
            suspend=on,
            suspend_timeout_in_seconds=10,
            resume=on,
            resume_timeout_in_seconds=10,
            terminate=on,
            terminate_timeout_in_seconds=60,
        ),
    )


def _logging(role: FunctionRole) -> lambda_.CfnMicrovmImage.LoggingProperty:
    group = role.log_group.log_group_name
    return lambda_.CfnMicrovmImage.LoggingProperty(
        cloud_watch=lambda_.CfnMicrovmImage.CloudWatchLoggingProperty(log_group=group)
    )
