"""The CDK app's CloudFormation template: synthesised once for each configuration, read as plain JSON."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.iam import Access

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ACCOUNT", "IMAGE", "Synthesised", "Violation", "kept", "run_app", "synthesise"]

ROOT = Path(__file__).parents[2]
ACCOUNT = "123456789012"
IMAGE = f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/soal@sha256:{'a' * 64}"

_PSEUDO = {"AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::AccountId": ACCOUNT, "AWS::StackName": "Soal"}
_HERE = f"us-east-1:{ACCOUNT}"
_ARNS = {
    "CloudWatch::Alarm": f"arn:aws:cloudwatch:{_HERE}:alarm:{{}}",
    "Events::Rule": f"arn:aws:events:{_HERE}:rule/{{}}",
    "IAM::Role": f"arn:aws:iam::{ACCOUNT}:role/{{}}",
    "DynamoDB::Table": f"arn:aws:dynamodb:{_HERE}:table/{{}}",
    "KMS::Key": f"arn:aws:kms:{_HERE}:key/{{}}",
    "Lambda::Function": f"arn:aws:lambda:{_HERE}:function:{{}}",
    "Logs::LogGroup": f"arn:aws:logs:{_HERE}:log-group:{{}}:*",
    "S3::Bucket": "arn:aws:s3:::{}",
    "SNS::Topic": f"arn:aws:sns:{_HERE}:{{}}",
    "SQS::Queue": f"arn:aws:sqs:{_HERE}:{{}}",
}

_DOCUMENTS = {"AssumeRolePolicyDocument", "KeyPolicy", "PolicyDocument"}

Resource = dict[str, Any]


@dataclass(frozen=True)
class Violation:
    """A rule of cdk-nag that a construct breaks without an acknowledgment in its code."""

    rule: str
    construct: str


@dataclass(frozen=True)
class Synthesised:
    """A template, and cdk-nag's findings in it."""

    path: Path
    template: dict[str, Any]
    violations: tuple[Violation, ...]

    @property
    def warnings(self) -> str:
        """All warnings of the app about the stack."""
        return "".join(path.read_text() for path in self.path.parent.glob("*.metadata.json")) or (
            self.path.with_name("manifest.json").read_text()
        )

    def of_type(self, kind: str) -> dict[str, Resource]:
        """Return the properties of all resources of a type, as `Lambda::Function`, by logical id."""
        resources = self.template["Resources"]
        return {
            name: resource.get("Properties", {})
            for name, resource in resources.items()
            if resource["Type"] == f"AWS::{kind}"
        }

    def the(self, kind: str, name: str = "") -> Resource:
        """Return the properties of the only resource of a type whose logical id begins with `name`."""
        (found,) = (properties for key, properties in self.of_type(kind).items() if key.startswith(name))
        return found

    def access(self, role: str) -> Access:
        """Return what the policies of a role allow; `role` is the beginning of its logical id."""
        (name,) = (key for key in self.of_type("IAM::Role") if key.startswith(role))
        policies = self.policies_of(name).values()
        return Access.of(self.resolved(policy["PolicyDocument"]) for policy in policies)

    def endpoint(self, service: str) -> Access:
        """Return what the endpoint policy of a service allows; the endpoint must have one."""
        (policy,) = (
            each["PolicyDocument"]
            for each in self.of_type("EC2::VPCEndpoint").values()
            if self.resolved(each["ServiceName"]).endswith(f".{service}")
        )
        return Access.of([self.resolved(policy)])

    def policies_of(self, role: str) -> dict[str, Resource]:
        """Return the policies of a role, including the managed one that the CDK adds when the inline one is full."""
        found = {**self.of_type("IAM::Policy"), **self.of_type("IAM::ManagedPolicy")}
        return {name: policy for name, policy in found.items() if {"Ref": role} in policy["Roles"]}

    def documents(self) -> dict[str, Resource]:
        """Return every policy document of the template, resolved, by the logical id of its resource."""
        found = {
            name: next(self.resolved(each[key]) for key in _DOCUMENTS if key in each)
            for name, each in ((name, each.get("Properties", {})) for name, each in self.template["Resources"].items())
            if _DOCUMENTS & each.keys()
        }
        return dict(sorted(found.items()))

    def resolved(self, value: Any) -> Any:
        """Replace references: a resource's name is its logical id in lower case, its ARN is derived from that."""
        if isinstance(value, list):
            return [self.resolved(each) for each in value]
        if not isinstance(value, dict) or not value:
            return value
        ((kind, given), *more) = value.items()
        if more or (kind != "Ref" and not kind.startswith("Fn::")):
            return {key: self.resolved(each) for key, each in value.items()}
        return self._called(kind, given)

    def _called(self, kind: str, given: Any) -> Any:
        match kind:
            case "Ref":
                return _PSEUDO.get(given) or self._ref(given)
            case "Fn::GetAtt":
                name, attribute = given
                return self._arn(name) if attribute == "Arn" else f"{name}.{attribute}"
            case "Fn::Join":
                return given[0].join(self.resolved(part) for part in given[1])
            case "Fn::Split" | "Fn::Select":
                first, rest = given[0], self.resolved(given[1])
                return rest.split(first) if kind == "Fn::Split" else rest[int(first)]
            case "Fn::Sub":
                return re.sub(r"\$\{(AWS::\w+)\}", lambda match: _PSEUDO[match[1]], given)
        return {kind: self.resolved(given)}

    def _ref(self, name: str) -> str:
        resource = self.template["Resources"].get(name, {"Type": ""})
        if resource["Type"] == "AWS::Lambda::Alias":
            return f"{self._arn(resource['Properties']['FunctionName']['Ref'])}:{resource['Properties']['Name']}"
        return self._arn(name) if resource["Type"] == "AWS::SNS::Topic" else name.lower()

    def _arn(self, name: str) -> str:
        return _ARNS[self.template["Resources"][name]["Type"].removeprefix("AWS::")].format(name.lower())

    def types(self) -> list[str]:
        """Return the type of each resource, in order."""
        return sorted(resource["Type"] for resource in self.template["Resources"].values())


def kept() -> Synthesised:
    """Return the plain stack's stored template; tests/unit/infra/test_stack.py compares it with a fresh one."""
    path = ROOT / "tests/unit/infra/snapshot.json"
    return Synthesised(path, json.loads(path.read_text()), ())


def synthesise(context: Mapping[str, object], folder: Path) -> Synthesised:
    """Run the app in this process, under cdk-nag's rules."""
    from aws_cdk import Validations  # it starts a Node process: import it only here
    from cdk_nag import AwsSolutionsChecks, ServerlessChecks

    from infra.app import new_app
    from infra.context import read_context
    from infra.stack import SoalStack

    app = new_app(outdir=str(folder))
    SoalStack(app, read_context(context))
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    with contextlib.suppress(RuntimeError):  # the findings are in the report
        app.synth()
    return _read(folder, _violations(folder / "validation-report.json"))


def run_app(context: Mapping[str, object], folder: Path) -> Synthesised:
    """Run the app as the `cdk` command line does, but with an empty PATH: no node, no docker, no aws."""
    environment = {
        "CDK_CONTEXT_JSON": json.dumps(context),
        "CDK_OUTDIR": str(folder),
        "HOME": str(Path.home()),  # jsii keeps its unpacked files there
        "PATH": "",
    }
    command = [sys.executable, "-m", "infra.app"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return _read(folder, ())


def _read(folder: Path, violations: tuple[Violation, ...]) -> Synthesised:
    (path,) = folder.glob("*.template.json")
    return Synthesised(path, json.loads(path.read_text()), violations)


def _violations(report: Path) -> tuple[Violation, ...]:
    return tuple(
        Violation(violation["ruleName"], construct["constructPath"])
        for plugin in json.loads(report.read_text())["pluginReports"]
        for violation in plugin["violations"]
        for construct in violation["violatingConstructs"]
    )
