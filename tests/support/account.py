"""The stack in an account on this machine, and sessions of its roles there."""

from __future__ import annotations

import copy
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from scripts.account.client import client_of
from scripts.account.deployment import STACK
from scripts.account.server import ACCOUNT
from soal.local.names import REGION
from tests.support.statement import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ["CONTEXT", "IMAGE", "KEY", "MORE", "OTHERWISE", "SECRET", "Caller", "Request", "Right", "Role"]

IMAGE = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/soal:test"
CONTEXT = {
    "image_uri": IMAGE,
    "alarm_email": "you@example.org",
    "lake_bucket": "true",
    "conditional_commits": "true",
    "continue_max": "3",
    "coordination": "dynamodb",
    "data": "my-lake/tables",
    "entry_point": "jobs/daily.py",
    "glue_databases": "lake",
    "kms": "true",
    "memory_mb": "2048",
    "provisioned_concurrency": "1",
    "queue": "true",
    "redrive_attempts": "3",
    "schedule": "rate(1 day)",
    "schedules": json.dumps(
        {"hourly": {"schedule": "cron(0 * * * ? *)", "script": "jobs/hourly.py", "timezone": "Europe/Rome"}}
    ),
    "sweep_minutes": "5",
    "timeout_s": "300",
    "tags": '{"team": "data"}',
    "tracing": "true",
}
SECRET = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:lake-AbCdEf"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
MORE = {
    **CONTEXT,
    "architecture": "arm64",
    "audit_log": "false",
    "checkpoint_days": "45",
    "continue_max": "0",
    "conf": '{"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog"}',
    "conf_allow": "spark.sql.ansi.enabled",
    "data_kms_key_arns": KEY,
    "environment": '{"TABLE": "s3a://my-lake/tables/t"}',
    "ephemeral_storage_mb": "4096",
    "event_logs": "on",
    "jit": "full",
    "log_level": "DEBUG",
    "log_retention_days": "14",
    "max_event_age_s": "3600",
    "open_write_alarm_minutes": "90",
    "queue_age_alarm_minutes": "400",
    "queue_concurrency": "3",
    "queue_receives": "4",
    "read_only_data": "raw/archive",
    "redrive_minutes": "30",
    "retry_attempts": "1",
    "s3_trigger": "raw/in",
    "secret_kms_key_arns": KEY,
    "secrets": json.dumps({"PGPASSWORD": f"{SECRET}#password"}),
    "state_machine": "true",
    "turns": '{"table": {"Ingestion": {"script": "jobs/ingestion.py"}}}',
    "warn_before_ms": "20000",
}
OTHERWISE = {
    **{key: CONTEXT[key] for key in ("image_uri", "lake_bucket", "data", "coordination", "kms")},
    "errors": "return",
    "reuse": "off",
    "scripts": "my-scripts/spark",
}
"""What contradicts keys of the others."""
_DENIED = {"AccessDenied", "AccessDeniedException", "403"}


@dataclass(frozen=True)
class Request:
    """A request that an account can be asked; `prefix` is that of a listing."""

    action: str
    resource: str
    prefix: str | None = None

    def __str__(self) -> str:
        return f"{self.action} on {self.resource}" + (f" ({self.prefix})" if self.prefix is not None else "")

    @property
    def bucket(self) -> dict[str, str]:
        return {"Bucket": self.resource.removeprefix("arn:aws:s3:::").partition("/")[0]}

    @property
    def object(self) -> dict[str, str]:
        return {**self.bucket, "Key": self.resource.partition("/")[2]}

    @property
    def name(self) -> str:
        """What follows the kind in an ARN: of a queue, a table, a group of logs."""
        return self.resource.rpartition(":")[2].rpartition("/")[2]


@dataclass(frozen=True)
class Right:
    """One action on one resource of a statement in a role's policy; for other services than S3 on all of them."""

    policy: str
    number: int
    sid: str
    action: str
    resources: tuple[str, ...]

    def first(self, requests: Iterable[Request]) -> list[Request]:
        """Return the requests of the action, first those that the right may concern."""
        asked = [one for one in requests if one.action == self.action]
        return sorted(asked, key=lambda one: not any(fnmatchcase(one.resource, each) for each in self.resources))

    def __str__(self) -> str:
        return f"{self.sid or self.policy}: {self.action} on {', '.join(self.resources)}"


@dataclass
class Caller:
    """Somebody who asks an account: a user, a session of a role. `variables` are those of his clients."""

    variables: Mapping[str, str]
    _clients: dict[str, Any] = field(default_factory=dict, kw_only=True)

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = client_of(self.variables, service)
        return self._clients[service]

    def is_denied(self, request: Request) -> bool:
        """Make the request; any answer but a denial is one, as that a key is missing."""
        try:
            _ASKED[request.action](self.client(request.action.partition(":")[0]), request)
        except ClientError as error:
            return error.response["Error"]["Code"] in _DENIED
        return False


@contextmanager
def _trusted(administrator: Caller, role: str) -> Iterator[None]:
    """Let the administrator assume a role, which trusts Lambda alone."""
    iam = administrator.client("iam")
    document = iam.get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"]
    him = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": iam.get_user()["User"]["Arn"]}}
    more = {**document, "Statement": [*document["Statement"], him]}
    iam.update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(more))
    try:
        yield
    finally:
        iam.update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(document))


@dataclass
class Role(Caller):
    """A session of a role of the stack. `administrator` is the account's, who may change what a role trusts."""

    arn: str
    administrator: Caller

    @classmethod
    def of(cls, administrator: Caller, function: str) -> Role:
        """Return the role of a function of the stack, by the beginning of its name."""
        functions = administrator.client("lambda").list_functions()["Functions"]
        (arn,) = (one["Role"] for one in functions if one["FunctionName"].startswith(f"{STACK}-{function}"))
        with _trusted(administrator, arn.rpartition("/")[2]):
            given = administrator.client("sts").assume_role(RoleArn=arn, RoleSessionName="test")["Credentials"]
        own = {
            "AWS_ACCESS_KEY_ID": given["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": given["SecretAccessKey"],
            "AWS_SESSION_TOKEN": given["SessionToken"],
        }
        return cls({**administrator.variables, **own}, arn, administrator)

    @property
    def name(self) -> str:
        return self.arn.rpartition("/")[2]

    @property
    def _iam(self) -> Any:
        return self.administrator.client("iam")

    def policies(self) -> dict[str, dict[str, Any]]:
        """Return its policies as the account has them; it must have no managed one."""
        iam = self._iam
        assert not iam.list_attached_role_policies(RoleName=self.name)["AttachedPolicies"]
        names = iam.list_role_policies(RoleName=self.name)["PolicyNames"]
        return {name: iam.get_role_policy(RoleName=self.name, PolicyName=name)["PolicyDocument"] for name in names}

    def rights(self) -> Iterator[Right]:
        """Yield what the statements allow."""
        for policy, document in self.policies().items():
            for number, statement in enumerate(document["Statement"]):
                if statement["Effect"] == "Deny":
                    continue
                resources = tuple(listed(statement["Resource"]))
                for action in listed(statement["Action"]):
                    for some in [(one,) for one in resources] if action.startswith("s3:") else [resources]:
                        yield Right(policy, number, statement.get("Sid", ""), action, some)

    @contextmanager
    def without(self, right: Right) -> Iterator[None]:
        """Take a right away, and put it back."""
        document = self._iam.get_role_policy(RoleName=self.name, PolicyName=right.policy)["PolicyDocument"]
        less = copy.deepcopy(document)
        statement = less["Statement"].pop(right.number)
        actions = [each for each in listed(statement["Action"]) if each != right.action]
        resources = [each for each in listed(statement["Resource"]) if each not in right.resources]
        less["Statement"] += [{**statement, "Action": actions}] if actions else []
        less["Statement"] += [{**statement, "Action": right.action, "Resource": resources}] if resources else []
        try:
            self._put(right.policy, less)
            yield
        finally:
            self._put(right.policy, document)

    def _put(self, policy: str, document: dict[str, Any]) -> None:
        if document["Statement"]:
            self._iam.put_role_policy(RoleName=self.name, PolicyName=policy, PolicyDocument=json.dumps(document))
        else:
            self._iam.delete_role_policy(RoleName=self.name, PolicyName=policy)


def _queue(sqs: Any, request: Request) -> dict[str, str]:
    return {"QueueUrl": f"{sqs.meta.endpoint_url}/{ACCOUNT}/{request.name}"}


def _table(request: Request) -> dict[str, str]:
    """Return the database and the table of an ARN `…:table/DATABASE/TABLE`."""
    _, database, table = request.resource.rpartition(":")[2].split("/")
    return {"DatabaseName": database, "TableName": table}


def _glue_input(request: Request) -> dict[str, Any]:
    table = _table(request)
    return {"DatabaseName": table["DatabaseName"], "TableInput": {"Name": table["TableName"]}}


_GONE = {"ReceiptHandle": "gone"}
_LOCK = {"lock": {"S": "t"}}
_ASKED: dict[str, Callable[[Any, Request], object]] = {
    "dynamodb:DeleteItem": lambda its, one: its.delete_item(TableName=one.name, Key=_LOCK),
    "dynamodb:GetItem": lambda its, one: its.get_item(TableName=one.name, Key=_LOCK),
    "dynamodb:PutItem": lambda its, one: its.put_item(TableName=one.name, Item=_LOCK),
    "dynamodb:Scan": lambda its, one: its.scan(TableName=one.name),
    "glue:BatchGetPartition": lambda its, one: its.batch_get_partition(**_table(one), PartitionsToGet=[]),
    "glue:CreateTable": lambda its, one: its.create_table(**_glue_input(one)),
    "glue:DeleteTable": lambda its, one: its.delete_table(DatabaseName=_table(one)["DatabaseName"], Name=one.name),
    "glue:GetPartitions": lambda its, one: its.get_partitions(**_table(one)),
    "glue:GetTable": lambda its, one: its.get_table(DatabaseName=_table(one)["DatabaseName"], Name=one.name),
    "glue:GetTables": lambda its, one: its.get_tables(DatabaseName=_table(one)["DatabaseName"]),
    "glue:UpdateTable": lambda its, one: its.update_table(**_glue_input(one)),
    "iam:ListRoles": lambda its, _: its.list_roles(),
    "kms:GenerateDataKey": lambda its, one: its.generate_data_key(KeyId=one.resource, KeySpec="AES_256"),
    "lambda:InvokeFunction": lambda its, one: its.invoke(FunctionName=one.resource, InvocationType="DryRun"),
    "s3:AbortMultipartUpload": lambda its, one: its.abort_multipart_upload(**one.object, UploadId="gone"),
    "s3:DeleteBucket": lambda its, one: its.delete_bucket(**one.bucket),
    "s3:DeleteObject": lambda its, one: its.delete_object(**one.object),
    "s3:DeleteObjectVersion": lambda its, one: its.delete_object(**one.object, VersionId="gone"),
    "s3:GetObject": lambda its, one: its.get_object(**one.object),
    "s3:ListBucket": lambda its, one: its.list_objects_v2(**one.bucket, Prefix=one.prefix),
    "s3:ListBucketMultipartUploads": lambda its, one: its.list_multipart_uploads(**one.bucket, Prefix=one.prefix),
    "s3:ListBucketVersions": lambda its, one: its.list_object_versions(**one.bucket, Prefix=one.prefix),
    "s3:PutBucketPolicy": lambda its, one: its.put_bucket_policy(**one.bucket, Policy="{}"),
    "s3:PutLifecycleConfiguration": lambda its, one: its.put_bucket_lifecycle_configuration(
        **one.bucket, LifecycleConfiguration={"Rules": []}
    ),
    "s3:PutObject": lambda its, one: its.put_object(**one.object, Body=b"", IfNoneMatch="*"),
    "s3:PutObjectAcl": lambda its, one: its.put_object_acl(**one.object, ACL="private"),
    "s3:PutObjectTagging": lambda its, one: its.put_object_tagging(**one.object, Tagging={"TagSet": []}),
    "secretsmanager:GetSecretValue": lambda its, one: its.get_secret_value(SecretId=one.resource),
    "sqs:ChangeMessageVisibility": lambda its, one: its.change_message_visibility(
        **_queue(its, one), **_GONE, VisibilityTimeout=0
    ),
    "sqs:DeleteMessage": lambda its, one: its.delete_message(**_queue(its, one), **_GONE),
    "sqs:GetQueueAttributes": lambda its, one: its.get_queue_attributes(**_queue(its, one)),
    "sqs:GetQueueUrl": lambda its, one: its.get_queue_url(QueueName=one.name),
    "sqs:ReceiveMessage": lambda its, one: its.receive_message(**_queue(its, one), VisibilityTimeout=0),
    "sqs:SendMessage": lambda its, one: its.send_message(**_queue(its, one), MessageBody="{}"),
    "sts:AssumeRole": lambda its, one: its.assume_role(RoleArn=one.resource, RoleSessionName="test"),
}
"""How each action is asked for. An invocation runs nothing."""
