"""The edges of a synthesised template: where one service acts on another, and what allows it.

Each edge is a request that AWS's documentation requires: who does what on which resource, in which context.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.cloud import ACCOUNT, Resource
from tests.support.iam import Access

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.support.cloud import Synthesised

__all__ = ["Edge", "edges", "missing"]

_OF_DATA = ("kms:Decrypt", "kms:GenerateDataKey")
_OF_EVENT_SOURCE = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
_OF_LOGS = ("kms:Encrypt", "kms:Decrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo", "kms:GenerateDataKey")
_OF_NETWORK = {
    "ec2:CreateNetworkInterface": ("network-interface/eni-1", "subnet/{}", "security-group/{}"),
    "ec2:DeleteNetworkInterface": ("network-interface/eni-1",),
    "ec2:AssignPrivateIpAddresses": ("network-interface/eni-1",),
    "ec2:UnassignPrivateIpAddresses": ("network-interface/eni-1",),
}


@dataclass(frozen=True)
class Edge:
    """A request that must be allowed: `by` is a service, or a role that a service assumes."""

    name: str
    by: str
    action: str
    resource: str
    allowed: bool
    context: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return f"{self.name}: no Allow lets {self.by} {self.action} on {self.resource}"


def missing(stack: Synthesised) -> list[str]:
    """Return each edge without an Allow."""
    return [str(edge) for edge in edges(stack) if not edge.allowed]


def edges(stack: Synthesised) -> list[Edge]:
    """Return all edges of the template."""
    return list(_Walk(stack).walk())


class _Walk:
    def __init__(self, stack: Synthesised) -> None:
        self._stack = stack
        self._documents = stack.documents()

    def walk(self) -> Iterator[Edge]:
        yield from self._alarms()
        yield from self._rules()
        yield from self._failures()
        yield from self._event_sources()
        yield from self._logs()
        yield from self._encrypted()
        yield from self._variables()
        yield from self._interfaces()
        yield from self._deployments()
        yield from self._schedules()
        yield from self._machines()
        yield from self._trusts()

    def _alarms(self) -> Iterator[Edge]:
        for name, alarm in self._stack.of_type("CloudWatch::Alarm").items():
            ours = self._from(name)
            for action in ("AlarmActions", "OKActions"):
                for told in alarm[action]:
                    topic = told["Ref"]
                    arn, service = self._stack.resolved(told), "cloudwatch.amazonaws.com"
                    policy = self._policy_of("SNS::TopicPolicy", "Topics", topic)
                    yield self._edge(f"{name} -> {topic}", service, "sns:Publish", arn, policy, ours)
                    key = self._stack.template["Resources"][topic]["Properties"].get("KmsMasterKeyId")
                    yield from self._key(f"{name} -> {topic} -> key", service, key, _OF_DATA, ours)

    def _rules(self) -> Iterator[Edge]:
        service = "events.amazonaws.com"
        permissions = self._stack.of_type("Lambda::Permission").values()
        for name, rule in self._stack.of_type("Events::Rule").items():
            ours = self._from(name)
            for target in rule["Targets"]:
                function = self._stack.resolved(target["Arn"])
                allowed = any(
                    each["Principal"] == service
                    and each["Action"] == "lambda:InvokeFunction"
                    and self._stack.resolved(each["FunctionName"]) == function
                    and self._stack.resolved(each["SourceArn"]) == ours["aws:SourceArn"]
                    for each in permissions
                )
                yield Edge(f"{name} -> function", service, "lambda:InvokeFunction", function, allowed)
                queue = target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0]
                yield from self._send(f"{name} -> {queue}", service, queue, ours)

    def _send(self, name: str, service: str, queue: str, context: Mapping[str, str]) -> Iterator[Edge]:
        policy = self._policy_of("SQS::QueuePolicy", "Queues", queue)
        arn = self._stack.resolved({"Fn::GetAtt": [queue, "Arn"]})
        yield self._edge(name, service, "sqs:SendMessage", arn, policy, context)
        yield from self._key(f"{name} -> key", service, self._key_of(queue), _OF_DATA, context)

    def _failures(self) -> Iterator[Edge]:
        for name, config in self._stack.of_type("Lambda::EventInvokeConfig").items():
            found = config.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
            if found is not None:
                role = self._role_of(self._stack.resolved(config["FunctionName"]))
                yield from self._as_role(f"{name} -> failures", role, found, ("sqs:SendMessage",))

    def _event_sources(self) -> Iterator[Edge]:
        for name, mapping in self._stack.of_type("Lambda::EventSourceMapping").items():
            function = self._stack.resolved(mapping["FunctionName"]).partition(":")[0]
            role = self._role_of(function)
            yield from self._as_role(f"{name} <- queue", role, mapping["EventSourceArn"], _OF_EVENT_SOURCE)

    def _as_role(self, name: str, role: str, queue: Any, actions: tuple[str, ...]) -> Iterator[Edge]:
        access = self._access_of(role)
        for action in actions:
            yield self._edge(name, role, action, self._stack.resolved(queue), access, {})

    def _encrypted(self) -> Iterator[Edge]:
        """S3 and SQS use a key as the role that gets or puts an object or a message."""
        for name, key, service in (
            *((bucket, _key_of_bucket(each), "s3") for bucket, each in self._stack.of_type("S3::Bucket").items()),
            *((queue, each.get("KmsMasterKeyId"), "sqs") for queue, each in self._stack.of_type("SQS::Queue").items()),
        ):
            arn = self._stack.resolved({"Fn::GetAtt": [name, "Arn"]})
            for role in self._stack.of_type("IAM::Role"):
                statements = self._access_of(role).statements
                named = {each.partition("/")[0] for statement in statements for each in statement.resources}
                if arn in named:
                    yield from self._key_as_role(f"{role} -> {name} -> key", role, key, service, _OF_DATA)

    def _logs(self) -> Iterator[Edge]:
        for name, group in self._stack.of_type("Logs::LogGroup").items():
            arn = self._stack.resolved({"Fn::GetAtt": [name, "Arn"]}).removesuffix(":*")
            context = {"kms:EncryptionContext:aws:logs:arn": arn}
            service = "logs.us-east-1.amazonaws.com"
            yield from self._key(f"{name} -> key", service, group.get("KmsKeyId"), _OF_LOGS, context)

    def _variables(self) -> Iterator[Edge]:
        """Lambda decrypts a function's variables as its role, if a key of the stack encrypts them."""
        for name, function in self._stack.of_type("Lambda::Function").items():
            role, key = function["Role"]["Fn::GetAtt"][0], function.get("KmsKeyArn")
            yield from self._key_as_role(f"{name} -> variables -> key", role, key, "lambda", ("kms:Decrypt",))

    def _interfaces(self) -> Iterator[Edge]:
        """Lambda creates network interfaces as the role; its requests do not carry the function's ARN."""
        for name, function in self._stack.of_type("Lambda::Function").items():
            if "VpcConfig" not in function:
                continue
            role, config = function["Role"]["Fn::GetAtt"][0], self._stack.resolved(function["VpcConfig"])
            access = self._access_of(role)
            for action in ("ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"):
                yield self._edge(f"{name} -> network", role, action, "*", access, {})
            for action, kinds in _OF_NETWORK.items():
                for kind in kinds:
                    ids = config["SubnetIds"] if "subnet" in kind else config["SecurityGroupIds"]
                    for each in ids if "{}" in kind else [""]:
                        arn = f"arn:aws:ec2:us-east-1:{ACCOUNT}:{kind.format(each)}"
                        yield self._edge(f"{name} -> network", role, action, arn, access, {})

    def _deployments(self) -> Iterator[Edge]:
        for name, group in self._stack.of_type("CodeDeploy::DeploymentGroup").items():
            role = group["ServiceRoleArn"]["Fn::GetAtt"][0]
            access = self._access_of(role)
            for alias in self._stack.of_type("Lambda::Alias"):
                for action in ("lambda:GetAlias", "lambda:UpdateAlias"):
                    arn = self._stack.resolved({"Ref": alias})
                    yield self._edge(f"{name} -> {alias}", role, action, arn, access, {})
            for alarm in group["AlarmConfiguration"]["Alarms"]:
                arn = self._stack.resolved({"Fn::GetAtt": [alarm["Name"]["Ref"], "Arn"]})
                yield self._edge(f"{name} <- alarm", role, "cloudwatch:DescribeAlarms", arn, access, {})

    def _schedules(self) -> Iterator[Edge]:
        """Scheduler invokes, and keeps what it cannot deliver, as the role of the target."""
        for name, schedule in self._stack.of_type("Scheduler::Schedule").items():
            target = schedule["Target"]
            role = target["RoleArn"]["Fn::GetAtt"][0]
            access, function = self._access_of(role), self._stack.resolved(target["Arn"])
            yield self._edge(f"{name} -> function", role, "lambda:InvokeFunction", function, access, {})
            yield from self._as_role(
                f"{name} -> failures", role, target["DeadLetterConfig"]["Arn"], ("sqs:SendMessage",)
            )

    def _machines(self) -> Iterator[Edge]:
        for name, machine in self._stack.of_type("StepFunctions::StateMachine").items():
            role = machine["RoleArn"]["Fn::GetAtt"][0]
            states = json.loads(self._stack.resolved(machine["DefinitionString"]))["States"]
            function = states["Run"]["Parameters"]["FunctionName"]
            yield self._edge(f"{name} -> function", role, "lambda:InvokeFunction", function, self._access_of(role), {})

    def _trusts(self) -> Iterator[Edge]:
        users = {
            **{name: ("lambda", each["Role"]) for name, each in self._stack.of_type("Lambda::Function").items()},
            **{
                name: ("codedeploy", each["ServiceRoleArn"])
                for name, each in self._stack.of_type("CodeDeploy::DeploymentGroup").items()
            },
            **{
                name: ("scheduler", each["Target"]["RoleArn"])
                for name, each in self._stack.of_type("Scheduler::Schedule").items()
            },
            **{
                name: ("states", each["RoleArn"])
                for name, each in self._stack.of_type("StepFunctions::StateMachine").items()
            },
        }
        ours = {"aws:SourceAccount": ACCOUNT}
        for name, (service, role) in users.items():
            logical = role["Fn::GetAtt"][0]
            trust = Access.of([self._documents[logical]])
            arn = self._stack.resolved(role)
            yield self._edge(f"{name} -> {logical}", f"{service}.amazonaws.com", "sts:AssumeRole", arn, trust, ours)

    # The policies that allow it.

    def _edge(
        self, name: str, by: str, action: str, resource: str, access: Access | None, context: Mapping[str, str]
    ) -> Edge:
        if access is not None and by.endswith(".amazonaws.com"):
            access = access.to(by)
        allowed = access is not None and access.decides(action, resource, context) is not None
        return Edge(name, by, action, resource, allowed, context)

    def _key(
        self, name: str, service: str, key: Any, actions: tuple[str, ...], context: Mapping[str, str]
    ) -> Iterator[Edge]:
        if key is None:
            return
        arn = self._stack.resolved(key)
        policy = Access.of([self._documents[key["Fn::GetAtt"][0]]])
        for action in actions:
            yield self._edge(name, service, action, arn, policy, context)

    def _key_as_role(self, name: str, role: str, key: Any, service: str, actions: tuple[str, ...]) -> Iterator[Edge]:
        """A key's policy may delegate to the policies of the account's roles."""
        if key is None:
            return
        arn = self._stack.resolved(key)
        context = {"kms:ViaService": f"{service}.us-east-1.amazonaws.com"}
        account = Access.of([self._documents[key["Fn::GetAtt"][0]]]).to(f"arn:aws:iam::{ACCOUNT}:root")
        for action in actions:
            yield self._edge(name, role, action, arn, self._access_of(role), context)
            allowed = account.decides(action, arn, context) is not None
            yield Edge(f"{name} (left to IAM)", "the account", action, arn, allowed, context)

    def _from(self, name: str) -> dict[str, str]:
        return {
            "aws:SourceAccount": ACCOUNT,
            "aws:SourceArn": self._stack.resolved({"Fn::GetAtt": [name, "Arn"]}),
        }

    def _policy_of(self, kind: str, of: str, name: str) -> Access | None:
        """Return a resource's own policy; the last attached one replaces the others."""
        found = [key for key, each in self._stack.of_type(kind).items() if {"Ref": name} in each[of]]
        return Access.of([self._documents[found[-1]]]) if found else None

    def _access_of(self, role: str) -> Access:
        return Access.of(self._documents[key] for key in self._stack.policies_of(role))

    def _role_of(self, function: str) -> str:
        ((_, found),) = (
            (name, each) for name, each in self._stack.of_type("Lambda::Function").items() if name.lower() == function
        )
        return str(found["Role"]["Fn::GetAtt"][0])

    def _key_of(self, queue: str) -> Any:
        return self._stack.template["Resources"][queue]["Properties"].get("KmsMasterKeyId")


def _key_of_bucket(bucket: Resource) -> Any:
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    return rule["ServerSideEncryptionByDefault"].get("KMSMasterKeyID")
