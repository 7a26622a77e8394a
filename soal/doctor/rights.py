"""Findings about the roles of a deployed function and its sweeper. IAM simulates the requests that each must make.

The simulation covers the role's policies, its boundary and the organisation's policies, but not the policies of buckets
and keys. https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html

JOB and SWEEPER list the S3 actions that handler, guard, Spark and sweeper need, each with its folders.
tests/unit/soal/doctor/test_rights.py compares them with recorded requests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal

from botocore.exceptions import BotoCoreError, ClientError

from safewriter.objects import Location
from soal.doctor.deployed import command, look
from soal.doctor.finding import Finding
from soal.doctor.stack import examine_sweeper

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from handler.settings import HandlerSettings
    from soal.doctor.deployed import DeployedFunction
    from soal.doctor.stack import Stack

Kind = Literal["checkpoints", "scripts", "data"]
_LISTING: Final = "s3:ListBucket"
_OF_BUCKETS: Final = (_LISTING, "s3:ListBucketMultipartUploads")
_PROBE: Final = "soal-doctor"
_ALLOWED: Final = "allowed"
_NOT_ALLOWED: Final = "implicitDeny"
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
_TO_DESTINATION: Final = {
    "sqs": "sqs:SendMessage",
    "sns": "sns:Publish",
    "lambda": "lambda:InvokeFunction",
    "events": "events:PutEvents",
    "s3": "s3:PutObject",
}


@dataclass(frozen=True, slots=True)
class Need:
    """An action in folders of the checkpoint bucket, the scripts or the tables. The folder "" means any key.

    For `s3:ListBucket` a folder may be a pattern of whole keys: S3 answers 404 for a missing key only to callers with
    that right.
    """

    action: str
    kind: Kind
    folders: tuple[str, ...] = ("",)


_TABLE: Final = ("", "_delta_log", "metadata")
_POINTER: Final = "_CURRENT"
"""The pointer of snapshots: an object, not a folder."""
_MANIFEST: Final = "manifests/*_run_id=*/manifest"
_RECORD: Final = "runs/*_run_id=*/run.yaml"
_SNAPSHOTS: Final = (_POINTER, _MANIFEST, _RECORD)
_ASKED: Final = ("cancels/*/*", "checkpoints/*.json", "leases/*/*", "locks/*.json", "notes/*/*", "runs/*.json")
JOB: Final = (
    Need("s3:GetObject", "checkpoints", ("cancels", "checkpoints", "leases", "locks", "notes", "runs")),
    Need(
        "s3:PutObject", "checkpoints", ("audit", "checkpoints", "leases", "locks", "notes", "open", "results", "runs")
    ),
    Need("s3:PutObjectTagging", "checkpoints", ("checkpoints", "notes")),
    Need("s3:DeleteObject", "checkpoints", ("open",)),
    Need("s3:ListBucket", "checkpoints", _ASKED),
    Need("s3:GetObject", "scripts"),
    Need("s3:GetObject", "data", (*_TABLE, *_SNAPSHOTS)),
    Need("s3:PutObject", "data", (*_TABLE, *_SNAPSHOTS)),
    Need("s3:DeleteObject", "data"),
    Need("s3:ListBucket", "data", (*_TABLE, _POINTER, _MANIFEST)),
    Need("s3:ListBucketMultipartUploads", "data"),
)
SWEEPER: Final = (
    Need("s3:GetObject", "checkpoints", ("checkpoints", "leases", "notes", "open")),
    Need("s3:PutObject", "checkpoints", ("audit", "checkpoints", "notes")),
    Need("s3:PutObjectTagging", "checkpoints", ("checkpoints", "notes")),
    Need("s3:DeleteObject", "checkpoints", ("leases", "open")),
    Need("s3:ListBucket", "checkpoints", ("leases", "open", "checkpoints/*.json", "leases/*/*", "notes/*/*")),
    Need("s3:GetObject", "data", ("_delta_log", "metadata", *_SNAPSHOTS)),
    Need("s3:PutObject", "data", ("_delta_log", "metadata", _POINTER, _RECORD)),
    Need("s3:DeleteObject", "data"),
    Need("s3:AbortMultipartUpload", "data"),
    Need("s3:ListBucket", "data", (*_TABLE, _MANIFEST)),
    Need("s3:ListBucketMultipartUploads", "data"),
)


@dataclass(frozen=True, slots=True)
class RequestKind:
    """All requests of a kind. `pattern` is the ARN of their resource, `prefix` the prefix of a listing."""

    action: str
    pattern: str
    prefix: str | None = None

    @property
    def resource(self) -> str:
        """The ARN of one resource of the pattern, for the simulation."""
        return self.pattern.replace("*", _PROBE)

    @property
    def probe_prefix(self) -> str | None:
        """The prefix of one listing, for the simulation."""
        return None if self.prefix is None else self.prefix.replace("*", _PROBE)


def requests_of(
    needs: Sequence[Need], places: Sequence[tuple[Kind, Location]], partition: str = "aws"
) -> Iterator[RequestKind]:
    """Yield the requests of each need in each place of its kind. `*` in a place's key matches any name."""
    for kind, place in places:
        bucket = f"arn:{partition}:s3:::{place.bucket}"
        root = f"{place.key.strip('/')}/" if place.key.strip("/") else ""
        for need in (need for need in needs if need.kind == kind):
            for below in (f"{root}{folder}/" if folder else root for folder in need.folders):
                if need.action in _OF_BUCKETS:
                    prefix = below.removesuffix("/") if "*" in below.removeprefix(root) else below
                    yield RequestKind(need.action, bucket, prefix if need.action == _LISTING else None)
                else:
                    folder = below.removeprefix(root).rstrip("/")
                    key = f"{root}{folder}" if folder == _POINTER or "*" in folder else f"{below}*"
                    yield RequestKind(need.action, f"{bucket}/{key}")


def examine_role(iam: Any, name: str, role_arn: str, requests: Sequence[RequestKind]) -> Iterator[Finding]:  # noqa: ANN401 - a boto3 client
    """Simulate requests of a role; yield a finding named `name` for each denied action."""
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
        remedy = f"give your own user iam:SimulatePrincipalPolicy on {role_arn}, and try again"
        yield Finding(name, "warn", detail, remedy)
        return
    denied = {request: decision for request, decision in decisions.items() if decision != _ALLOWED}
    for action in sorted({request.action for request in denied}):
        yield _denied(name, role_arn, action, denied, [request for request in requests if request.action == action])
    if not denied:
        yield Finding(name, "ok", f"{role_arn} may make all {len(decisions)} kinds of requests")


def _circumstances(request: RequestKind) -> tuple[str, bool, str]:
    return request.resource, request.prefix is None, request.probe_prefix or ""


def _simulated(iam: Any, role_arn: str, requests: Sequence[RequestKind]) -> Mapping[RequestKind, str]:  # noqa: ANN401 - as above
    """Simulate requests for one resource and prefix; return the decision on each, the strictest of several."""
    context = [
        {"ContextKeyName": "s3:prefix", "ContextKeyType": "string", "ContextKeyValues": [request.probe_prefix]}
        for request in requests[:1]
        if request.probe_prefix is not None
    ]
    pages = iam.get_paginator("simulate_principal_policy").paginate(
        PolicySourceArn=role_arn,
        ActionNames=sorted({request.action for request in requests}),
        ResourceArns=[requests[0].resource],
        ContextEntries=context,
    )
    results = [result for page in pages for result in page["EvaluationResults"]]
    decisions: dict[str, str] = {}
    for result in sorted(results, key=lambda result: bool(result["EvalDecision"] != _ALLOWED)):
        decisions[result["EvalActionName"]] = _decision(result)
    return {request: decisions.get(request.action, _NOT_ALLOWED) for request in requests}


def _decision(result: Mapping[str, Any]) -> str:
    """Return `allowed`, `implicitDeny` if no statement allows it, or which kind of policy denies it."""
    decision = str(result["EvalDecision"])
    if not result.get("OrganizationsDecisionDetail", {}).get("AllowedByOrganizations", True):
        return "denied by a policy of the organisation"
    if not result.get("PermissionsBoundaryDecisionDetail", {}).get("AllowedByPermissionsBoundary", True):
        return "denied by the permissions boundary"
    return decision


def _denied(
    name: str, role_arn: str, action: str, denied: Mapping[RequestKind, str], all_of_action: Sequence[RequestKind]
) -> Finding:
    decisions = {request: decision for request, decision in denied.items() if request.action == action}
    actions = dict.fromkeys(_place_of(request) for request in decisions)
    reasons = ", ".join(sorted(set(decisions.values())))
    detail = f"{role_arn} may not {action} on {', '.join(actions)} ({reasons})"
    if set(decisions.values()) == {_NOT_ALLOWED}:
        role = role_arn.rpartition("/")[2]
        policy = f"soal-{name.replace(' ', '-')}-{action.partition(':')[2]}"
        document = json.dumps({"Version": "2012-10-17", "Statement": _statements(action, all_of_action)})
        remedy = command("iam", "put-role-policy", role_name=role, policy_name=policy, policy_document=document)
        return Finding(name, "fail", detail, remedy)
    request = next(iter(request for request, decision in decisions.items() if decision != _NOT_ALLOWED))
    remedy = command(
        "iam",
        "simulate-principal-policy",
        policy_source_arn=role_arn,
        action_names=action,
        resource_arns=request.resource,
    )
    return Finding(name, "fail", detail, f"{remedy}; its MatchedStatements name the policy that denies it")


def _place_of(request: RequestKind) -> str:
    return request.pattern if request.prefix is None else f"{request.pattern} below {request.prefix or 'its root'}"


def _statements(action: str, requests: Sequence[RequestKind]) -> list[dict[str, Any]]:
    """Return statements that allow the action wherever it is needed. Putting them twice changes nothing."""
    plain = sorted({request.pattern for request in requests if not request.prefix})
    grants: list[dict[str, Any]] = [{"Effect": "Allow", "Action": action, "Resource": plain}] if plain else []
    for request in requests:
        if request.prefix and request.pattern not in plain:
            condition = {"StringLike": {"s3:prefix": [request.prefix.rstrip("/"), f"{request.prefix}*"]}}
            grants.append({"Effect": "Allow", "Action": action, "Resource": request.pattern, "Condition": condition})
    return grants


def examine_rights(
    function: DeployedFunction, settings: HandlerSettings, stack: Stack | None, tables: Sequence[Location]
) -> Iterator[Finding]:
    """Simulate the function's role; with a stack, also examine the sweeper and its role."""
    lake = None if stack is None else stack.outputs.get("LakeBucket")
    data = [*tables, *(() if lake is None else (Location(lake, "*"),))]
    if not data:
        detail = "none is known, so the roles' permissions on tables were not simulated"
        yield Finding("tables", "warn", detail, "name one that jobs write to: --table s3://bucket/table")
    places: list[tuple[Kind, Location]] = [("checkpoints", settings.guard.checkpoint_bucket)]
    places += [("data", place) for place in data]
    partition = function.arn.split(":")[1]
    requests = [*requests_of(JOB, [*places, *_scripts(settings)], partition), *_other_requests(function, settings)]
    yield from _role(function, "role", function.configuration, requests)
    if stack is not None:
        requests = list(requests_of(SWEEPER, places, partition))
        yield from look("sweeper", lambda: _sweeper(function, stack, requests))


def _sweeper(function: DeployedFunction, stack: Stack, requests: Sequence[RequestKind]) -> Iterator[Finding]:
    sweeper = yield from examine_sweeper(function.client, stack)
    if sweeper is not None:
        yield from _role(function, "sweeper's role", sweeper, requests)


def _role(
    function: DeployedFunction, name: str, configuration: Mapping[str, Any], requests: Sequence[RequestKind]
) -> Iterator[Finding]:
    yield from examine_role(function.client("iam"), name, configuration["Role"], tuple(dict.fromkeys(requests)))


def _scripts(settings: HandlerSettings) -> list[tuple[Kind, Location]]:
    folder = settings.script_folder
    if folder is not None:
        return [("scripts", folder)]
    script = settings.script
    return [] if script is None else [("scripts", Location(script.bucket, script.key.rpartition("/")[0]))]


def _other_requests(function: DeployedFunction, settings: HandlerSettings) -> Iterator[RequestKind]:
    """Yield the requests that Lambda makes with the role, and the handler's invocation that continues a run."""
    if function.destination is not None:
        action = _TO_DESTINATION[function.destination.split(":")[2]]
        yield RequestKind(action, function.destination + ("/*" if action == "s3:PutObject" else ""))
    if function.is_durable:
        execution = f"{function.arn}:$LATEST/durable-execution/name/id"
        yield RequestKind("lambda:CheckpointDurableExecution", execution)
        yield RequestKind("lambda:GetDurableExecutionState", execution)
    if settings.continue_max > 0:
        yield RequestKind("lambda:InvokeFunction", str(function.configuration["FunctionArn"]))
