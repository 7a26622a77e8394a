"""IAM's policy simulation, which moto lacks: a boto3 client that answers by the tests' own policy evaluator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import boto3
from botocore.validate import validate_parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.iam import Access

__all__ = ["simulating"]


def simulating(roles: Mapping[str, Access]) -> Any:
    """Return an IAM client that simulates the roles, by ARN; requests and answers fit the service's model."""
    client = boto3.client("iam", region_name="us-east-1")
    shape = client.meta.service_model.operation_model("SimulatePrincipalPolicy")

    def answer(params: Mapping[str, Any], **_: object) -> tuple[Any, Mapping[str, Any]]:
        asked = params["body"]
        numbered = {
            key: [value for name, value in asked.items() if name.startswith(f"{key}.member.")]
            for key in ("ActionNames", "ResourceArns")
        }
        entry = "ContextEntries.member.1"
        context = (
            {asked[f"{entry}.ContextKeyName"]: asked[f"{entry}.ContextKeyValues.member.1"]}
            if f"{entry}.ContextKeyName" in asked
            else {}
        )
        access = roles[asked["PolicySourceArn"]]
        results = [
            {
                "EvalActionName": action,
                "EvalResourceName": resource,
                "EvalDecision": "allowed" if access.decides(action, resource, context) else _denial(access, action),
            }
            for action in numbered["ActionNames"]
            for resource in numbered["ResourceArns"]
        ]
        found = {"EvaluationResults": results, "IsTruncated": False}
        validate_parameters(found, shape.output_shape)
        return Mock(status_code=200), found

    client.meta.events.register("before-call.iam.SimulatePrincipalPolicy", answer)
    return client


def _denial(access: Access, action: str) -> str:
    denies = any(each.effect == "Deny" and action in each.actions for each in access.statements)
    return "explicitDeny" if denies else "implicitDeny"
