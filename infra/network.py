"""The network of the functions, if the context asks for one, and the endpoints that they need there.

A job calls S3, and perhaps Glue, Secrets Manager and its own function; Lambda handles logs, metrics and destinations
outside this network.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from aws_cdk import Acknowledgment, Annotations, Aws, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra import catalog, secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import aws_dynamodb as dynamodb

    from infra.config import Config

_CATALOG_URI: Final = re.compile(r"spark\.sql\.catalog\.[^.]+\.uri|PYICEBERG_CATALOG__.+__URI", re.IGNORECASE)


class Network(Construct):
    """`vpc`, `subnets` (with `subnet_ids`) and `security_groups` for a function; empty without a network.

    `buckets`: the ARNs of the buckets that functions can reach through the endpoint of an own network; `locks`: the
    table of locks, if there is one.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        config: Config,
        buckets: Sequence[str] = (),
        locks: dynamodb.ITable | None = None,
    ) -> None:
        super().__init__(scope, name)
        self._buckets, self._locks = buckets, locks
        self._lambda: ec2.InterfaceVpcEndpoint | None = None
        self.vpc: ec2.IVpc | None = None
        self.subnets: ec2.SubnetSelection | None = None
        self.subnet_ids: list[str] = []
        self.security_groups: list[ec2.ISecurityGroup] | None = None
        if config.network == "own":
            self._make_own(config)
            if far := _out_of_reach(config):
                Annotations.of(self).add_warning_v2(
                    "soal:reach",
                    f"network=own has no way to the internet, so jobs and sweeper do not reach {', '.join(far)}; use"
                    " network=existing",
                )
        elif config.network == "existing":
            self._use_existing(config)

    def _make_own(self, config: Config) -> None:
        """Create a network without internet access: functions reach only its endpoints."""
        isolated = ec2.SubnetConfiguration(name="jobs", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=24)
        vpc = ec2.Vpc(
            self,
            "Vpc",
            max_azs=2,
            nat_gateways=0,
            restrict_default_security_group=False,  # would add another function with another role
            subnet_configuration=[isolated],
        )
        Validations.of(vpc).acknowledge(
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-VPC7",
                reason="Nothing but the stack's functions is in this network, and they reach nothing but its endpoints",
            )
        )
        group = ec2.SecurityGroup(self, "Jobs", vpc=vpc, description="SoAL jobs", allow_all_outbound=False)
        group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "S3 and the endpoints below, by TLS")
        self.vpc, self.security_groups = vpc, [group]
        self.subnets = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
        self.subnet_ids = [subnet.subnet_id for subnet in vpc.isolated_subnets]
        s3 = vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        for statement in self._statements_on_s3():
            s3.add_to_policy(statement)
        if self._locks is not None:
            dynamodb = vpc.add_gateway_endpoint("DynamoDb", service=ec2.GatewayVpcEndpointAwsService.DYNAMODB)
            actions = ["dynamodb:GetItem", "dynamodb:PutItem"]
            dynamodb.add_to_policy(_of_account("TakeTurns", actions, [self._locks.table_arn]))
        # The job may do all that the sweeper may.
        for service, rights in (
            (ec2.InterfaceVpcEndpointAwsService.GLUE, catalog.job_statements(config)),
            (ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER, secrets.job_statements(config)),
        ):
            # Rights on a key of secrets do not concern the endpoint: Secrets Manager uses the key.
            service_rights = [right for right in rights if right.actions[0].startswith(f"{service.short_name}:")]
            if service_rights:
                endpoint = self._endpoint(vpc, service, group)
                for right in service_rights:
                    endpoint.add_to_policy(_of_account(str(right.sid), right.actions, right.resources))
        if config.continue_max > 0 or config.durable is not None:
            self._lambda = self._endpoint(vpc, ec2.InterfaceVpcEndpointAwsService.LAMBDA_, group)

    def let_call_itself(self, sid: str, actions: list[str], resources: list[str]) -> None:
        """Allow these requests of the job's function on Lambda's endpoint, if there is one."""
        if self._lambda is not None:
            self._lambda.add_to_policy(_of_account(sid, actions, resources))

    def _statements_on_s3(self) -> list[iam.PolicyStatement]:
        """Allow the roles' rights, in the buckets that the stack knows, with this account's credentials.

        Lambda itself fetches the image and writes the logs, so the endpoint need not allow AWS's own buckets.
        """
        return [
            _of_account(sid, [f"s3:{action}" for action in actions], resources)
            for sid, actions, resources in (
                ("ListOurs", ("ListBucket", "ListBucketMultipartUploads"), list(self._buckets)),
                (
                    "UseOurs",
                    ("GetObject", "PutObject", "PutObjectTagging", "DeleteObject", "AbortMultipartUpload"),
                    [f"{arn}/*" for arn in self._buckets],
                ),
            )
        ]

    def _endpoint(
        self, vpc: ec2.Vpc, service: ec2.InterfaceVpcEndpointAwsService, jobs: ec2.ISecurityGroup
    ) -> ec2.InterfaceVpcEndpoint:
        """Create an endpoint, which allows everything until its policy gets the first statement."""
        name = service.short_name.title().replace(".", "").replace("-", "")
        group = ec2.SecurityGroup(
            self,
            f"{name}Endpoint",
            vpc=vpc,
            description=f"SoAL: endpoint of {service.short_name}",
            allow_all_outbound=False,
        )
        group.add_ingress_rule(jobs, ec2.Port.tcp(443), "jobs")
        return vpc.add_interface_endpoint(name, service=service, open=False, security_groups=[group])

    def _use_existing(self, config: Config) -> None:
        # No look-up by id, which would query the account at every synthesis.
        self.vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=str(config.vpc_id),
            availability_zones=list(config.availability_zones),
            private_subnet_ids=list(config.subnet_ids),
        )
        self.subnets = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS)
        self.subnet_ids = list(config.subnet_ids)
        self.security_groups = [
            ec2.SecurityGroup.from_security_group_id(self, f"Group{number}", group, mutable=False)
            for number, group in enumerate(config.security_group_ids, start=1)
        ]


def _out_of_reach(config: Config) -> list[str]:
    """Return the things that the own network cannot reach: settings of catalogs' servers, and secrets outside the
    region to which the `cdk` command deploys.
    """
    catalogs = [
        name
        for name, value in (*config.conf.items(), *config.environment.items())
        if _CATALOG_URI.fullmatch(name) and "://" in value
    ]
    own_region = os.environ.get("CDK_DEFAULT_REGION")
    regions = () if own_region is None else (name for name in secrets.regions_of(config) if name != own_region)
    return [*catalogs, *(f"secrets of {name}" for name in regions)]


def _of_account(sid: str, actions: list[str], resources: list[str]) -> iam.PolicyStatement:
    """Allow on an endpoint requests with this account's credentials."""
    return iam.PolicyStatement(
        sid=sid,
        principals=[iam.AnyPrincipal()],
        actions=actions,
        resources=resources,
        conditions={"StringEquals": {"aws:PrincipalAccount": Aws.ACCOUNT_ID}},
    )
