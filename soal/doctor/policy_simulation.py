"""Findings about a function's role: IAM simulates whether it may make the function's requests.

The simulation knows the role's policies, its boundary and the organisation's; it does not look at policies of buckets
and keys. https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from soal.doctor.deployed import command
from soal.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from soal.doctor.required_actions import RequestKind

__all__ = ["examine_role"]

_ALLOWED: Final = "allowed"
_NOT_ALLOWED: Final = "implicitDeny"


def examine_role(iam: Any, name: str, role_arn: str, requests: Sequence[RequestKind]) -> Iterator[Finding]:  # noqa: ANN401 - a boto3 client
    """Simulate requests of a role; a finding for each action that is denied. `name` is that of the findings."""
    decisions: dict[RequestKind, str] = {}
    try:
        for _, alike in groupby(sorted(requests, key=_circumstances), key=_circumstances):
            decisions |= _simulated(iam, role_arn, list(alike))
    except (BotoCoreError, ClientError) as error:
        detail = f"the permissions of {role_arn} are not known: {error}"
        if isinstance(error, ClientError) and error.response["Error"]["Code"] == "NoSuchEntity":
            yield Finding(
                name, "fail", f"{role_arn} does not exist any more", "deploy the stack again, or make the role"
            )
            return
        remedy = f"have iam:SimulatePrincipalPolicy on {role_arn} allowed to your own user, and try again"
        yield Finding(name, "warn", detail, remedy)
        return
    denied = {request: decision for request, decision in decisions.items() if decision != _ALLOWED}
    for action in sorted({request.action for request in denied}):
        yield _denied(name, role_arn, action, denied, [each for each in requests if each.action == action])
    if not denied:
        yield Finding(name, "ok", f"{role_arn} may make all {len(decisions)} kinds of requests")


def _circumstances(request: RequestKind) -> tuple[str, bool, str]:
    return request.resource, request.prefix is None, request.asked or ""


def _simulated(iam: Any, role_arn: str, requests: Sequence[RequestKind]) -> Mapping[RequestKind, str]:  # noqa: ANN401 - as above
    """Simulate requests of one resource and prefix; return the decision about each, the strictest if there are more."""
    context = [
        {"ContextKeyName": "s3:prefix", "ContextKeyType": "string", "ContextKeyValues": [request.asked]}
        for request in requests[:1]
        if request.asked is not None
    ]
    pages = iam.get_paginator("simulate_principal_policy").paginate(
        PolicySourceArn=role_arn,
        ActionNames=sorted({request.action for request in requests}),
        ResourceArns=[requests[0].resource],
        ContextEntries=context,
    )
    results = [result for page in pages for result in page["EvaluationResults"]]
    found: dict[str, str] = {}
    for result in sorted(results, key=lambda result: bool(result["EvalDecision"] != _ALLOWED)):
        found[result["EvalActionName"]] = _decision(result)
    return {request: found.get(request.action, _NOT_ALLOWED) for request in requests}


def _decision(result: Mapping[str, Any]) -> str:
    """Return `allowed`, `implicitDeny` if a statement is missing, else the policy that denies."""
    decision = str(result["EvalDecision"])
    if not result.get("OrganizationsDecisionDetail", {}).get("AllowedByOrganizations", True):
        return "denied by a policy of the organisation"
    if not result.get("PermissionsBoundaryDecisionDetail", {}).get("AllowedByPermissionsBoundary", True):
        return "denied by the permissions boundary"
    return decision


def _denied(
    name: str, role_arn: str, action: str, denied: Mapping[RequestKind, str], all_of_action: Sequence[RequestKind]
) -> Finding:
    found = {request: decision for request, decision in denied.items() if request.action == action}
    told = dict.fromkeys(_told(request) for request in found)
    reasons = ", ".join(sorted(set(found.values())))
    detail = f"{role_arn} may not {action} on {', '.join(told)} ({reasons})"
    if set(found.values()) == {_NOT_ALLOWED}:
        role = role_arn.rpartition("/")[2]
        policy = f"soal-{name.replace(' ', '-')}-{action.partition(':')[2]}"
        document = json.dumps({"Version": "2012-10-17", "Statement": _statements(action, all_of_action)})
        remedy = command("iam", "put-role-policy", role_name=role, policy_name=policy, policy_document=document)
        return Finding(name, "fail", detail, remedy)
    first = next(iter(request for request, decision in found.items() if decision != _NOT_ALLOWED))
    remedy = command(
        "iam",
        "simulate-principal-policy",
        policy_source_arn=role_arn,
        action_names=action,
        resource_arns=first.resource,
    )
    return Finding(name, "fail", detail, f"{remedy}; its MatchedStatements name the policy that denies it")


def _told(request: RequestKind) -> str:
    return request.pattern if request.prefix is None else f"{request.pattern} below {request.prefix or 'its root'}"


def _statements(action: str, requests: Sequence[RequestKind]) -> list[dict[str, Any]]:
    """Return statements that allow the action wherever it is needed; to put them again changes nothing."""
    plain = sorted({request.pattern for request in requests if not request.prefix})
    found: list[dict[str, Any]] = [{"Effect": "Allow", "Action": action, "Resource": plain}] if plain else []
    for request in requests:
        if request.prefix and request.pattern not in plain:
            condition = {"StringLike": {"s3:prefix": [request.prefix.rstrip("/"), f"{request.prefix}*"]}}
            found.append({"Effect": "Allow", "Action": action, "Resource": request.pattern, "Condition": condition})
    return found
