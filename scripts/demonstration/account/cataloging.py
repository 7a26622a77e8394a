"""An Iceberg table in the account's Glue catalog: written by a job, killed before it is published, and repeated."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from scripts.accommodations import ROWS
from scripts.account.server import ACCOUNT
from scripts.demonstration.account.deploying import GLUE_DATABASE
from scripts.demonstration.account.journey import trusted
from scripts.demonstration.account.killing import HOLD, HUNG_S, WRITES_S, hold, kill
from scripts.tables import iceberg

if TYPE_CHECKING:
    from scripts.demonstration.account.journey import Journey
    from scripts.tables.delta import TableView

_OTHER: Final = "others"
_CATALOG: Final = "lake"
_TABLE: Final = "accommodations"


def in_glue(journey: Journey) -> None:
    """Write, kill before the publishing, repeat; then ask for a database that the stack does not name."""
    journey.act("An Iceberg table in the account's Glue catalog")
    glue = journey.client("glue")
    for name in (GLUE_DATABASE, _OTHER):
        glue.create_database(DatabaseInput={"Name": name})
    _allow_reading(journey, glue.meta.region_name)
    table = f"{_CATALOG}.{GLUE_DATABASE}.{_TABLE}"
    said = journey.invoke(_event(journey, "accommodations_iceberg", "glue-first", table))
    first = _table(journey, table)
    journey.check(
        f"the first job succeeds, and the table holds {ROWS:,} rows",
        holds=(said.state, first.rows, first.orphans) == ("SUCCESS", ROWS, ()),
    )
    _own(glue)
    hold(journey, "commit", HUNG_S)
    lists = _lists(journey)
    event = _event(
        journey, "accommodations_held", "glue-killed", table, "--hold", journey.lake(HOLD), "--format", "iceberg"
    )
    process = journey.start("invoke", journey.event_file(event), "--function", journey.made["InvokeArn"], "--json")
    waited = journey.waits("a snapshot to publish", lambda: _lists(journey) > lists, WRITES_S)
    killed = kill(journey, process)
    seen = _table(journey, table)
    journey.check(
        f"containers killed before success() publishes its snapshot: {killed}; the table is as it was",
        holds=waited is not None and killed > 0 and (seen.version, seen.rows) == (first.version, first.rows),
    )
    hold(journey, "commit", 0)
    said = journey.invoke(event)
    after = _table(journey, table)
    journey.check(
        f"the same event again: SUCCESS, its rows are in the table once: {ROWS:,} + {ROWS:,}, and no file is left over",
        holds=(said.state, after.rows, after.orphans) == ("SUCCESS", 2 * ROWS, ()),
    )
    said = journey.invoke(_event(journey, "accommodations_iceberg", "glue-other", f"{_CATALOG}.{_OTHER}.t"))
    found = said.document or {}
    journey.check(
        "a database that glue_databases does not name: the job fails, and its result names a right of Glue",
        holds=found.get("state") == "FAILED" and "glue:" in str(found.get("stateDetails")),
    )
    journey.check("Glue lists no table there", holds=not glue.get_tables(DatabaseName=_OTHER)["TableList"])


def _allow_reading(journey: Journey, region: str) -> None:
    """Let the job's role read the database under the name for which ministack asks: that of a table."""
    function = journey.client("lambda").get_function_configuration(FunctionName=journey.made["FunctionName"])
    named = f"arn:aws:glue:{region}:{ACCOUNT}:table/{GLUE_DATABASE}"
    statement = {"Effect": "Allow", "Action": "glue:GetDatabase", "Resource": named}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    role = str(function["Role"]).rpartition("/")[2]
    journey.client("iam").put_role_policy(RoleName=role, PolicyName="ministack", PolicyDocument=policy)


def _own(glue: Any) -> None:  # noqa: ANN401 - a boto3 client
    """Give the table an owner: where there is none, ministack invents an empty one, which boto3 does not take back."""
    found = glue.get_table(DatabaseName=GLUE_DATABASE, Name=_TABLE)["Table"]
    taken = glue.meta.service_model.shape_for("TableInput").members
    table = {name: value for name, value in found.items() if name in taken}
    glue.update_table(DatabaseName=GLUE_DATABASE, TableInput={**table, "Owner": "journey"})


def _event(journey: Journey, job: str, token: str, table: str, *more: str) -> dict[str, Any]:
    """Return an event with a catalog, as docs/guides/iceberg.md names it."""
    event = journey.event(job, token, *more)
    event["entryPointArguments"][3] = table
    prefix = f"spark.sql.catalog.{_CATALOG}"
    warehouse = f"s3://{journey.made['LakeBucket']}/warehouse"
    kind = "org.apache.iceberg.spark.SparkCatalog"
    return {**event, "conf": {prefix: kind, f"{prefix}.type": "glue", f"{prefix}.warehouse": warehouse}}


def _glue(journey: Journey) -> dict[str, str]:
    """Return pyiceberg's properties of the catalog."""
    aws = journey.account.aws
    return {
        "type": "glue",
        "glue.endpoint": journey.here.endpoint,
        "glue.region": aws["AWS_REGION"],
        "glue.access-key-id": aws["AWS_ACCESS_KEY_ID"],
        "glue.secret-access-key": aws["AWS_SECRET_ACCESS_KEY"],
    }


def _lists(journey: Journey) -> int:
    """Return how many lists of manifests are in S3: each snapshot has one, before it is published."""
    pages = journey.client("s3").get_paginator("list_objects_v2").paginate(Bucket=journey.made["LakeBucket"])
    return sum("/metadata/snap-" in row["Key"] for page in pages for row in page.get("Contents", ()))


def _table(journey: Journey, table: str) -> TableView:
    with trusted(journey.account.aws["AWS_CA_BUNDLE"]):
        seen = iceberg.view(journey.client("s3"), _glue(journey), table)
    journey.line("table", f"{seen.version} snapshots, {seen.rows:,} rows, {seen.files} files (read by pyiceberg)")
    return seen
