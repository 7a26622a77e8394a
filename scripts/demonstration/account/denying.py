"""The role of the job loses a right: the job names it, changes nothing, and succeeds when it is given back."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, Final

from scripts.accommodations import ROWS

if TYPE_CHECKING:
    from scripts.demonstration.account.journey import Journey

_RIGHT: Final = "s3:PutObject"


def denied_and_allowed(journey: Journey) -> None:
    """Take away the right to write to the lake, by the account's administrator, and give it back."""
    journey.act(f"The job's role loses {_RIGHT} on the lake")
    before = journey.table()
    event = journey.event("accommodations_delta", "denied")
    role, policy, document = _policy(journey)
    _put(journey, role, policy, _without(document, journey.made["LakeBucket"]))
    said = journey.invoke(event)
    found = said.document or {}
    journey.check(
        f"the job fails, and its result names {_RIGHT}",
        holds=found.get("state") == "FAILED" and _RIGHT in str(found.get("stateDetails")),
    )
    journey.check("the table is as it was", holds=journey.table() == before)
    _put(journey, role, policy, document)
    said = journey.invoke(event)
    after = journey.table()
    journey.check(
        "with the right, the same event succeeds, and its rows are in the table once",
        holds=said.state == "SUCCESS" and after.rows == before.rows + ROWS,
    )


def _policy(journey: Journey) -> tuple[str, str, dict[str, Any]]:
    """Return the job's role, and its policy that names the lake."""
    iam = journey.client("iam")
    function = journey.client("lambda").get_function_configuration(FunctionName=journey.made["FunctionName"])
    role = str(function["Role"]).rpartition("/")[2]
    for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        if document != _without(document, journey.made["LakeBucket"]):
            return role, name, document
    raise AssertionError


def _without(document: dict[str, Any], bucket: str) -> dict[str, Any]:
    """Return the policy with the statements on a bucket's objects allowing one action less."""
    less = copy.deepcopy(document)
    for statement in less["Statement"]:
        if statement["Resource"] == f"arn:aws:s3:::{bucket}/*" and isinstance(statement["Action"], list):
            statement["Action"] = [action for action in statement["Action"] if action != _RIGHT]
    return less


def _put(journey: Journey, role: str, policy: str, document: dict[str, Any]) -> None:
    text = json.dumps(document)
    journey.client("iam").put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=text)
