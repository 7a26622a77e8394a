"""Sessions of the deployed roles in an account that enforces their policies: what each may do, and nothing else.

The requests on S3 are those that handler, guard, Spark and sweeper have made (tests/unit/infra/requests.json). A right
that is taken away is missed, or `UNTRIED` says why this account cannot tell.
"""

from __future__ import annotations

import json
import re
import ssl
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPSConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session
from typer.testing import CliRunner

from handler.functions import redrive, sweeper
from safewriter.coordination.backends.opening import open_backend
from safewriter.deadline import Deadline, epoch_ms
from safewriter.identity import Attempt, Run, Write, canonical_table
from safewriter.objects import Location, StoreError
from safewriter.objects.s3 import open_store
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import CommitPoint
from safewriter.record.marker import Marker
from safewriter.tables.iceberg.catalogs import open_pointer
from safewriter.tables.iceberg.name import TableName
from scripts.account.server import ACCOUNT
from soal.console.problem import Problem
from soal.local.names import REGION
from tests.support.account import Caller, Request, Role
from tests.support.command_line import app
from tests.support.roles import CHECKPOINTS, FOLDERS, JOB, LAKE, SCRIPTS, SWEEPER, kept_needs
from tests.unit.handler.functions.messages import UNREADABLE, failed, record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scripts.account.deployment import Deployment
    from scripts.account.server import Account

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
FUNCTIONS = {"job": "RuntimeFunction", "sweeper": "SweeperFunction", "redrive": "RedriveFunction"}
# What each may do in the folders of the checkpoint bucket: the job changes documents and never deletes them, and writes
# results and the audit log without reading them.
IN_FOLDERS = {
    "job": {
        "s3:GetObject": {"checkpoints", "leases", "notes", "runs", "cancels", "locks"},
        "s3:PutObject": {"checkpoints", "open", "leases", "notes", "audit", "runs", "results", "eventlogs", "locks"},
        "s3:PutObjectTagging": {"checkpoints", "notes"},
        "s3:DeleteObject": {"open"},
        "s3:DeleteObjectVersion": set(),
    },
    "sweeper": {
        "s3:GetObject": {"checkpoints", "open", "leases", "notes"},
        "s3:PutObject": {"checkpoints", "notes", "audit"},
        "s3:PutObjectTagging": {"checkpoints", "notes"},
        "s3:DeleteObject": {"open", "leases"},
        "s3:DeleteObjectVersion": set(),
    },
}
ON_OBJECTS = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
# Keys below the named place on which the sweeper settles; the first ones if the place itself is the table.
SETTLED = (
    *("_delta_log/00000000000000000000.json", "metadata/00001-0.metadata.json", "_CURRENT"),
    *("t/_delta_log/00000000000000000007.json", "db/t/metadata/00001-0.metadata.json"),
    *("snap/_CURRENT", "snap/runs/2026_run_id=1_2/run.yaml"),
)
ROWS = (
    *(f"{name}/part-0.parquet" for name in ("t", "ml_runs", "runs", "manifests", "run_id=1", "NOT_CURRENT")),
    "t/rows_CURRENT",
)
BOOTSTRAPPED = f"cdk-hnb659fds-deploy-role-{ACCOUNT}-{REGION}"
UNTRIED = {
    "WriteLogs": "ministack asks for the right on the group, AWS on its streams, which end in :*",
    "UseKey": "S3, SQS and Lambda use no key here, and a request of the role's own is none by way of a service",
    "glue:GetDatabase": "ministack takes the database's name for that of a table",
    "xray:": "ministack has no X-Ray",
}


@dataclass(frozen=True)
class Stack:
    """What the stack has made, by the names of its outputs, and what its roles may do, and may not."""

    made: dict[str, str]
    roles: dict[str, Role]
    key: str

    def bucket(self, output: str, key: str = "") -> str:
        return f"arn:aws:s3:::{self.made[output]}" + (f"/{key}" if key else "")

    def queue(self, output: str) -> str:
        return f"arn:aws:sqs:{REGION}:{ACCOUNT}:{self.made[output].rpartition('/')[2]}"

    def here(self, service: str, rest: str) -> str:
        return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{rest}"

    def documented(self, role: str) -> list[Request]:
        """Return the requests that a role has to be allowed."""
        folders = IN_FOLDERS.get(role, {}).items()
        keys = (self._checkpoint(action, folder) for action, some in folders for folder in sorted(some))
        return [*self._on_s3(role), *keys, *self._else(role)]

    def _checkpoint(self, action: str, folder: str) -> Request:
        return Request(action, self.bucket("CheckpointBucket", f"{folder}/key"))

    def _on_s3(self, role: str) -> Iterator[Request]:
        """Yield those on the named place with data, and the same on the stack's own bucket, which is named whole."""
        needs = [need for need in kept_needs() if need.role == {"job": JOB, "sweeper": SWEEPER}.get(role)]
        kept = [Request(need.action, need.resource, need.prefix) for need in needs]
        own = {CHECKPOINTS: self.made["CheckpointBucket"], SCRIPTS: self.made["ScriptBucket"]}
        for one in (*kept, *_on_tables(role)):
            bucket, slash, key = one.resource.removeprefix("arn:aws:s3:::").partition("/")
            yield Request(one.action, f"arn:aws:s3:::{own.get(bucket, bucket)}{slash}{key}", one.prefix)
            if bucket == LAKE:
                prefix = None if one.prefix is None else one.prefix.removeprefix("tables/")
                lake = self.bucket("LakeBucket") + slash + key.removeprefix("tables/")
                yield Request(one.action, lake, prefix)

    def _else(self, role: str) -> list[Request]:
        catalog = self.here("glue", "table/lake/t")
        if role == "sweeper":
            return [Request(f"glue:{action}", catalog) for action in ("GetTable", "UpdateTable")]
        if role == "redrive":
            taking = ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility")
            return [
                *(Request(f"sqs:{action}", self.queue("FailureQueueUrl")) for action in taking),
                Request("sqs:SendMessage", self.queue("ParkedQueueUrl")),
                Request("lambda:InvokeFunction", self.made["InvokeArn"]),
            ]
        tables = ("GetTable", "GetTables", "GetPartitions", "BatchGetPartition", "CreateTable", "UpdateTable")
        # Lambda as the role: it takes messages, and sends failed events.
        jobs = ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "GetQueueAttributes", "GetQueueUrl")
        failures = ("SendMessage", "GetQueueAttributes", "GetQueueUrl")
        locks = self.here("dynamodb", f"table/{self.made['LockTable']}")
        return [
            *(Request(f"glue:{action}", catalog) for action in tables),
            *(Request(f"sqs:{action}", self.queue("JobQueueUrl")) for action in jobs),
            *(Request(f"sqs:{action}", self.queue("FailureQueueUrl")) for action in failures),
            *(Request(f"dynamodb:{action}", locks) for action in ("GetItem", "PutItem")),
            *(Request("lambda:InvokeFunction", self.made[name]) for name in ("InvokeArn", "FunctionName")),
        ]

    def forbidden(self, role: str) -> list[Request]:
        """Return requests that a role must be denied."""
        lake = f"arn:aws:s3:::{LAKE}"
        lake, another = f"arn:aws:s3:::{LAKE}", "arn:aws:s3:::another"
        neighbours = (f"{lake}/other/x", f"{lake}/tables-2/x", f"{another}/tables/x")
        locks = self.here("dynamodb", f"table/{self.made['LockTable']}")
        return [
            *(Request(action, each) for action in ON_OBJECTS for each in neighbours),
            # `tables` is also the beginning of `tables-2`
            *(Request("s3:ListBucket", lake, prefix) for prefix in ("", "tables", "tables-2", "tables-2/", "other/")),
            Request("s3:ListBucketMultipartUploads", another, "tables/"),
            *(Request(action, f"{lake}/tables/t/x") for action in ("s3:DeleteObjectVersion", "s3:PutObjectAcl")),
            *(Request(f"s3:{action}", lake) for action in ("PutBucketPolicy", "PutLifecycleConfiguration")),
            Request("s3:DeleteBucket", lake),
            *(Request(action, self.bucket("ScriptBucket", "job.py")) for action in ("s3:PutObject", "s3:DeleteObject")),
            Request("s3:ListBucket", self.bucket("ScriptBucket"), "jobs/"),
            *self._in_folders(role),
            *(Request(f"dynamodb:{action}", locks) for action in ("DeleteItem", "Scan")),
            Request("glue:DeleteTable", self.here("glue", "table/lake/t")),
            Request("glue:GetTable", self.here("glue", "table/another/t")),
            Request("iam:ListRoles", "*"),
            Request("kms:GenerateDataKey", self.key),
            Request("lambda:InvokeFunction", self.here("lambda", f"function:{self.made['SweeperName']}")),
            Request("secretsmanager:GetSecretValue", self.here("secretsmanager", "secret:x-AbCdEf")),
            Request("sqs:ReceiveMessage", self.queue("ParkedQueueUrl")),
            Request("sqs:SendMessage", self.queue("JobQueueUrl")),
            *(Request("sts:AssumeRole", other.arn) for name, other in self.roles.items() if name != role),
            *self._of_the_others(role),
        ]

    def _in_folders(self, role: str) -> Iterator[Request]:
        """Yield what a role may not do to documents, and the listings by which it would see others' names."""
        own, every = IN_FOLDERS.get(role, {}), IN_FOLDERS["job"]
        for action in every:
            yield from (self._checkpoint(action, each) for each in sorted({*FOLDERS, "other"} - own.get(action, set())))
        listed = {"open", "leases"} if role == "sweeper" else set()
        for prefix in ("", *(f"{folder}/{end}" for folder in sorted(FOLDERS - listed) for end in ("", "sw-", "x/"))):
            for action in ("s3:ListBucket", "s3:ListBucketVersions"):
                yield Request(action, self.bucket("CheckpointBucket"), prefix)

    def _of_the_others(self, role: str) -> list[Request]:
        """Return what another role may."""
        locks = self.here("dynamodb", f"table/{self.made['LockTable']}")
        rows = f"arn:aws:s3:::{LAKE}/tables/"
        if role == "job":
            return [Request("sqs:ReceiveMessage", self.queue("FailureQueueUrl"))]
        of_both = [
            *(Request(action, rows + key) for action in ("s3:GetObject", "s3:PutObject") for key in ROWS),
            Request("s3:GetObject", self.bucket("ScriptBucket", "job.py")),
            Request("dynamodb:GetItem", locks),
            Request("glue:CreateTable", self.here("glue", "table/lake/t")),
            Request("sqs:SendMessage", self.queue("FailureQueueUrl")),
            Request("lambda:InvokeFunction", self.made["FunctionArn"]),  # not the alias, which a rollback moves
        ]
        return [*of_both, *([Request("lambda:InvokeFunction", self.made["InvokeArn"])] if role == "sweeper" else [])]


def _on_tables(role: str) -> list[Request]:
    """Return requests on tables that the recorded scenario has not made."""
    place = f"arn:aws:s3:::{LAKE}/tables/"
    listings = [Request("s3:ListBucket", f"arn:aws:s3:::{LAKE}", prefix) for prefix in ("tables/", "tables/t")]
    if role == "job":
        return [*listings, *(Request(action, f"{place}t/part-0.parquet") for action in ON_OBJECTS)]
    if role == "redrive":
        return []
    return [
        *listings,
        *(Request(action, place + key) for action in ("s3:GetObject", "s3:PutObject") for key in SETTLED),
        *(Request(action, place + ROWS[0]) for action in ("s3:DeleteObject", "s3:AbortMultipartUpload")),
        Request("s3:GetObject", f"{place}snap/manifests/2026_run_id=1/manifest"),
    ]


@pytest.fixture(scope="module")
def stack(account: Account, made: dict[str, str], client: Callable[[str], Any]) -> Stack:
    for name in (LAKE, "another"):
        client("s3").create_bucket(Bucket=name)
    client("glue").create_database(DatabaseInput={"Name": "lake"})
    roles = {name: Role.of(Caller(account.aws), function) for name, function in FUNCTIONS.items()}
    (key,) = client("kms").list_keys()["Keys"]
    return Stack(made, roles, key["KeyArn"])


@pytest.fixture(params=list(FUNCTIONS))
def role(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_each_documented_request_is_answered(stack: Stack, role: str) -> None:
    """Of handler, guard, Spark, sweeper and redrive, and of Lambda on the job's behalf."""
    requests = stack.documented(role)

    assert len(requests) > 4
    assert [str(one) for one in requests if stack.roles[role].is_denied(one)] == []


def test_what_a_role_was_not_given_is_denied(stack: Stack, role: str) -> None:
    """Another prefix or bucket, the scripts, finished documents, a key itself, other functions, roles and queues."""
    assert [str(one) for one in stack.forbidden(role) if not stack.roles[role].is_denied(one)] == []


def test_a_right_that_is_taken_away_is_missed(stack: Stack, role: str) -> None:
    """So no statement allows more than a documented request needs. Each is put back."""
    asked = stack.roles[role]
    requests = stack.documented(role)
    superfluous, tried = [], 0
    for right in asked.rights():
        if any(right.sid == word or right.action.startswith(word) for word in UNTRIED):
            continue
        tried += 1
        with asked.without(right):
            if not any(asked.is_denied(one) for one in right.first(requests)):
                superfluous.append(str(right))

    assert superfluous == []
    assert tried > 4
    assert not any(asked.is_denied(one) for one in requests[:: len(requests) // 5])


def test_whoever_deploys_has_no_other_rights(stack: Stack, deployment: Deployment) -> None:
    """He may assume the roles of the bootstrap, by which CloudFormation acts for him, and that is all."""
    deployer = Caller(deployment.variables)
    for denied in (
        Request("s3:ListBucket", stack.bucket("LakeBucket"), ""),
        Request("lambda:InvokeFunction", stack.made["InvokeArn"]),
        Request("iam:ListRoles", "*"),
        Request("sts:AssumeRole", stack.roles["job"].arn),
    ):
        assert deployer.is_denied(denied)
    assert not deployer.is_denied(Request("sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/{BOOTSTRAPPED}"))


def test_only_lambda_assumes_a_role_of_the_stack(stack: Stack, account: Account, client: Callable[[str], Any]) -> None:
    """Not a user whose own rights would let him."""
    iam = client("iam")
    iam.create_user(UserName="guest")
    every = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [every]})
    iam.put_user_policy(UserName="guest", PolicyName="assume", PolicyDocument=document)
    key = iam.create_access_key(UserName="guest")["AccessKey"]
    own = {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
    guest = Caller({**account.aws, **own})

    assert all(guest.is_denied(Request("sts:AssumeRole", role.arn)) for role in stack.roles.values())


@contextmanager
def without(role: Role, sid: str, resource: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Be the role, without a right of one of its statements."""
    right = next(each for each in role.rights() if each.sid == sid and resource in each.resources)
    for name, value in role.variables.items():
        monkeypatch.setenv(name, value)
    with role.without(right):
        yield


def test_a_job_names_the_right_that_it_lacks(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard, when it claims a write, which no right on the table can help."""
    document = stack.bucket("CheckpointBucket", "open/*")
    write = Write(Run("denied", "run-id"), canonical_table(f"s3://{LAKE}/tables/denied"), "delta", None)
    marker = Marker.of(write, Attempt.draw(), CommitPoint.WRITE, started_ms=0, deadline_ms=epoch_ms())

    with (
        without(stack.roles["job"], "WriteDocuments", document, monkeypatch),
        pytest.raises(StoreError, match=r"PUT s3://.*/open/.*AccessDenied.*\. Allow s3:PutObject .*on it"),
    ):
        Checkpoints(open_store(Location(stack.made["CheckpointBucket"]))).mark(marker)


def test_a_turn_names_the_right_that_it_lacks(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator on DynamoDB."""
    table = stack.here("dynamodb", f"table/{stack.made['LockTable']}")

    with (
        without(stack.roles["job"], "TakeTurns", table, monkeypatch),
        pytest.raises(StoreError, match=r"GetItem dynamodb://.*Allow dynamodb:GetItem on the table"),
    ):
        open_backend(f"dynamodb://{stack.made['LockTable']}").read("denied")


def test_a_sweep_names_the_right_that_it_lacks(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a listing of the markers there is nothing to settle, and silence would be no witness."""
    environment = {"SW_CHECKPOINT_BUCKET": stack.made["CheckpointBucket"]}

    with (
        without(stack.roles["sweeper"], "FindMarkers", stack.bucket("CheckpointBucket"), monkeypatch),
        pytest.raises(StoreError, match=r"LIST s3://.*/open/.*Allow s3:ListBucket on its bucket"),
    ):
        sweeper.handle(environment, Deadline(epoch_ms() + 60_000, epoch_ms()))


def test_a_settler_names_the_right_that_it_lacks_on_a_catalog(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Glue, which holds the pointer to a table of Iceberg."""
    sweeping, table = stack.roles["sweeper"], TableName.parse("denied.lake.t")
    where = {"type": "glue", "glue.endpoint": sweeping.variables["AWS_ENDPOINT_URL"], "client.region": REGION}

    with (
        without(sweeping, "UseCatalog", stack.here("glue", "table/lake/*"), monkeypatch),
        pytest.raises(
            StoreError, match=r"denied\.lake\.t in catalog 'denied'.*Allow glue:GetTable on the catalog, its "
        ),
    ):
        open_pointer(table, where, lambda uri: open_store(Location.parse(uri))).read()


@pytest.mark.parametrize("sid", ["InvokeAgain", "SetAside"])
def test_a_redrive_names_the_right_that_it_lacks(
    stack: Stack, client: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, sid: str
) -> None:
    """For each event, which stays in the queue: one could be invoked again, the other one nobody can read."""
    made, parked = stack.made, stack.queue("ParkedQueueUrl")
    for body in (record({"clientToken": "denied"}, failed()), UNREADABLE):
        client("sqs").send_message(QueueUrl=made["FailureQueueUrl"], MessageBody=body)
    environment = {
        "SOAL_REDRIVE_QUEUE": made["FailureQueueUrl"],
        "SOAL_REDRIVE_PARKED": made["ParkedQueueUrl"],
        "SOAL_REDRIVE_FUNCTION": made["InvokeArn"],
        "SOAL_REDRIVE_ATTEMPTS": "3",
    }
    resource, said = {
        "InvokeAgain": (made["InvokeArn"], f"Allow lambda:InvokeFunction on {made['InvokeArn']}"),
        "SetAside": (parked, f"Allow sqs:SendMessage on {made['ParkedQueueUrl']}"),
    }[sid]

    with without(stack.roles["redrive"], sid, resource, monkeypatch):
        found = [one.reason for one in redrive.redrive(environment) if one.what == "failed"]

    assert [reason for reason in found if said in (reason or "")]


def test_the_command_names_the_right_that_its_caller_lacks(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The redrive's role has no business with runs."""
    for name, value in stack.roles["redrive"].variables.items():
        monkeypatch.setenv(name, value)
    bucket = stack.made["CheckpointBucket"]

    listed = CliRunner().invoke(app, ["runs", "list", "--bucket", bucket])
    invoked = CliRunner().invoke(app, ["invoke", "-", "--function", stack.made["FunctionArn"]], input="{}")

    assert isinstance(listed.exception, Problem)
    assert re.search(rf"LIST s3://{bucket}/.*Allow s3:ListBucket on its bucket", str(listed.exception))
    assert isinstance(invoked.exception, Problem)
    assert stack.made["FunctionArn"] in str(invoked.exception)
    assert "lambda:InvokeFunction" in invoked.exception.todo


def answered(account: Account, key: str | None, path: str = "/", headers: Mapping[str, str] | None = None) -> int:
    """Ask IAM for its users in the name of a key, by POST; return the status."""
    body = "Action=ListUsers&Version=2010-05-08"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    request = AWSRequest("POST", account.endpoint + path, headers=form, data=body)
    if key is not None:
        SigV4Auth(Credentials(key, account.aws["AWS_SECRET_ACCESS_KEY"]), "iam", REGION).add_auth(request)
    for name, value in (headers or {}).items():
        request.headers[name] = value
    session = URLLib3Session(verify=account.aws["AWS_CA_BUNDLE"])  # type: ignore[arg-type] # a path, too
    return int(session.send(request.prepare()).status_code)


@pytest.mark.parametrize("key", [None, "test", ACCOUNT, "999999999999"])
def test_nobody_is_the_account_s_root(account: Account, key: str | None) -> None:
    """Ministack would take each of these keys, and none at all, for its root's, without a look at the signature."""
    assert answered(account, key) == HTTPStatus.FORBIDDEN
    assert answered(account, account.aws["AWS_ACCESS_KEY_ID"]) == HTTPStatus.OK


@pytest.mark.parametrize("second", [ACCOUNT, "١٢٣٤٥٦٧٨٩٠١٢"], ids=["its number", "a number in other digits"])
@pytest.mark.parametrize("where", ["before", "behind", "alone", "in the query", "in small letters", "in capitals"])
def test_nobody_names_two_keys(account: Account, second: str, where: str) -> None:
    """Ministack takes the first of several names, wherever they stand, and knows the digits of all scripts."""
    own, root = (
        f"AWS4-HMAC-SHA256 Credential={key}/20260101/{REGION}/iam/aws4_request, SignedHeaders=host, Signature=0"
        for key in (account.aws["AWS_ACCESS_KEY_ID"], second)
    )
    headers = {"before": [root, own], "behind": [own, root], "alone": [root]}.get(where, [own])
    name = "X-Amz-Credential"
    named = {"in the query": name, "in small letters": name.lower(), "in capitals": name.upper()}.get(where)
    query = "" if named is None else f"?{named}={quote(second)}/20260101/{REGION}/iam/aws4_request"
    place = urlsplit(account.endpoint)
    context = ssl.create_default_context(cafile=account.aws["AWS_CA_BUNDLE"])
    connection = HTTPSConnection(str(place.hostname), place.port, context=context)
    with closing(connection):
        connection.putrequest("POST", "/" + query)
        for header in headers:
            connection.putheader("Authorization", header.encode())
        connection.putheader("Content-Type", "application/x-www-form-urlencoded")
        body = b"Action=ListUsers&Version=2010-05-08"
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        assert connection.getresponse().status == HTTPStatus.FORBIDDEN


def test_a_key_of_the_account_needs_its_secret(account: Account) -> None:
    """Ministack compares the signature."""
    forged = Caller({**account.aws, "AWS_SECRET_ACCESS_KEY": "not-the-secret"})
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        forged.client("iam").list_users()


@pytest.mark.parametrize(
    "path",
    ["/_ministack/config", "/_ministack/reset", "/_localstack/health", "/v2/_catalog", "/health", "/latest/meta-data/"],
)
def test_what_the_emulator_gives_without_a_signature_is_closed(account: Account, path: str) -> None:
    """By its own settings functions would run as programs of this machine, and its registry takes any image."""
    assert answered(account, account.aws["AWS_ACCESS_KEY_ID"], path) == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("key", ["?X-AMZ-CREDENTIAL=AKIAX/", "?x-amz-credential=AKIAX/", "?AWSAccessKeyId=AKIAX", ""])
@pytest.mark.parametrize("path", ["/2015-03-31/functions/", "/2015-03-31/%2566unctions", "/%2532015-03-31/functions/"])
def test_no_spelling_reaches_a_function_without_a_key(account: Account, path: str, key: str) -> None:
    """Ministack knows two spellings of a credential's name, and decodes Lambda's paths twice."""
    assert answered(account, None, path + key) == HTTPStatus.FORBIDDEN


def test_a_path_that_is_encoded_twice_is_closed_to_keys_too(account: Account) -> None:
    """Behind the check of rights it would be another path, so that a user without rights could make functions."""
    assert answered(account, account.aws["AWS_ACCESS_KEY_ID"], "/2015-03-31/%2566unctions") == HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("header", ["Origin", "Sec-Fetch-Site"])
def test_no_web_page_talks_to_the_account(account: Account, header: str) -> None:
    """Ministack allows every origin."""
    assert answered(account, account.aws["AWS_ACCESS_KEY_ID"], headers={header: "null"}) == HTTPStatus.FORBIDDEN
