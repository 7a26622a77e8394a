"""On moto: a function, its image, queue and bucket, all correct, and each thing wrong once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError
from moto import mock_aws

from safewriter.objects import Location
from soal.doctor.deployed import DeployedFunction
from soal.doctor.function import _as_invoked, examine_function
from tests.support.aws_command import commands, complaint
from tests.support.iam import Access
from tests.support.simulated_iam import simulating
from tests.support.statement import Statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from soal.doctor.finding import Finding

pytestmark = pytest.mark.slow

REPOSITORY = "123456789012.dkr.ecr.us-east-1.amazonaws.com/soal"
FOLDERS = ("checkpoints", "notes", "runs", "results")
DAYS_20 = dict.fromkeys(FOLDERS, 20)
QUEUE = "arn:aws:sqs:us-east-1:123456789012:{}"


@dataclass
class Account:
    """Makes a deployed function. Each field changes one thing; everything else is correct."""

    lifecycle: Mapping[str, int] = field(default_factory=lambda: DAYS_20)
    tagged: tuple[str, ...] = ("checkpoints", "notes")
    """A lifecycle in which only finished objects expire."""
    variables: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    destination: bool = True
    visibility_s: int = 5400
    batch_size: int = 1
    has_image: bool = True
    has_dead_letters: bool = True
    has_script: bool = True

    def make(self) -> None:
        self._image()
        sqs = boto3.client("sqs")
        sqs.create_queue(QueueName="failures", Attributes={"MessageRetentionPeriod": "1209600"})
        redrive = json.dumps({"deadLetterTargetArn": QUEUE.format("failures"), "maxReceiveCount": "3"})
        attributes = {"VisibilityTimeout": str(self.visibility_s)}
        more = {"RedrivePolicy": redrive} if self.has_dead_letters else {}
        sqs.create_queue(QueueName="jobs", Attributes={**attributes, **more})
        self._buckets()
        self._function()

    def _image(self) -> None:
        ecr = boto3.client("ecr")
        ecr.create_repository(repositoryName="soal")
        layer = {"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "size": 1, "digest": "sha256:1"}
        config = {"mediaType": "application/vnd.docker.container.image.v1+json", "size": 1, "digest": "sha256:2"}
        kind = "application/vnd.docker.distribution.manifest.v2+json"
        manifest = {"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]}
        if self.has_image:
            ecr.put_image(repositoryName="soal", imageManifest=json.dumps(manifest), imageTag="one")

    def _buckets(self) -> None:
        s3 = boto3.client("s3")
        for bucket in ("checkpoints", "scripts"):
            s3.create_bucket(Bucket=bucket)
        s3.put_bucket_versioning(Bucket="checkpoints", VersioningConfiguration={"Status": "Enabled"})
        rules: list[Any] = [
            {"ID": folder, "Status": "Enabled", "Filter": self._filter(folder), "Expiration": {"Days": days}}
            for folder, days in self.lifecycle.items()
        ]
        if rules:
            s3.put_bucket_lifecycle_configuration(Bucket="checkpoints", LifecycleConfiguration={"Rules": rules})
        if self.has_script:
            s3.put_object(Bucket="scripts", Key="job.py", Body=b"")

    def _filter(self, folder: str) -> dict[str, Any]:
        of_prefix = {"Prefix": f"{folder}/" if folder else ""}
        tags = [{"Key": "soal", "Value": "finished"}]
        return {"And": {**of_prefix, "Tags": tags}} if folder in self.tagged else of_prefix

    def _function(self) -> None:
        iam, lambda_ = boto3.client("iam"), boto3.client("lambda")
        role = iam.create_role(RoleName="job", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        variables = {"SW_CHECKPOINT_BUCKET": "checkpoints", "SOAL_ENTRY_POINT": "s3://scripts/job.py"}
        code: dict[str, Any] = {"PackageType": "Image", "Code": {"ImageUri": f"{REPOSITORY}:one"}}
        sizes = {"Timeout": 900, "MemorySize": 3008, "EphemeralStorage": {"Size": 2048}}
        environment = {"Variables": {**variables, **self.variables}}
        lambda_.create_function(
            FunctionName="soal", Role=role, Environment=environment, **{**code, **sizes, **self.settings}
        )
        if self.destination:
            lambda_.put_function_event_invoke_config(
                FunctionName="soal",
                MaximumRetryAttempts=0,
                MaximumEventAgeInSeconds=21_600,
                DestinationConfig={"OnFailure": {"Destination": QUEUE.format("failures")}},
            )
        lambda_.create_event_source_mapping(
            FunctionName="soal", EventSourceArn=QUEUE.format("jobs"), BatchSize=self.batch_size
        )


@pytest.fixture(autouse=True)
def amazon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("AWS_ENDPOINT_URL")  # moto answers at Amazon's own addresses only
    monkeypatch.setenv("MOTO_LAMBDA_STUB_ECR", "FALSE")
    with mock_aws():
        yield


def look(account: Account, name: str = "soal") -> dict[str, Finding]:
    account.make()
    return seen(name)


ROLE = "arn:aws:iam::123456789012:role/job"
EVERYTHING = Access((Statement("All", "Allow", ("*",), ("*",)),))
TABLES = (Location("lake", "t"),)


def seen(name: str = "soal", access: Access = EVERYTHING, tables: tuple[Location, ...] = TABLES) -> dict[str, Finding]:
    def client(service: str) -> Any:
        return simulating({ROLE: access}) if service == "iam" else boto3.client(service)  # type: ignore[call-overload]

    found = list(examine_function(name, client, tables))
    assert all(finding.remedy for finding in found if finding.status == "fail"), found
    wrong = [(one, complaint(one)) for finding in found for one in commands(finding.remedy) if complaint(one)]
    assert not wrong, wrong
    return {finding.name: finding for finding in found}


def test_a_function_that_is_well() -> None:
    """Every finding is ok, and nothing stays in the bucket; moto's S3 has no clock, and there is no stack."""
    found = look(Account())
    assert [name for name, finding in found.items() if finding.status != "ok"] == ["stack", "clock"]
    assert found["retention"].detail == "documents live for 20 days, events can come again for 15 at most"
    assert "Contents" not in boto3.client("s3").list_objects_v2(Bucket="checkpoints")


def test_each_thing_that_is_wrong_is_found() -> None:
    """Each problem is found, with the command that repairs it."""
    found = look(
        Account(
            lifecycle={**DAYS_20, "runs": 7, "open": 7},
            variables={"SOAL_ERRORS": "return", "DB_PASSWORD": "open sesame", "AWS_ENDPOINT_URL_S3": "http://x"},
            settings={
                "Timeout": 3,
                "MemorySize": 512,
                "EphemeralStorage": {"Size": 512},
                "ImageConfig": {"Command": ["other.handler"]},
            },
            destination=False,
            visibility_s=10,
            batch_size=10,
            has_dead_letters=False,
            has_script=False,
        )
    )
    boto3.client("lambda").put_function_concurrency(FunctionName="soal", ReservedConcurrentExecutions=0)
    found |= {name: finding for name, finding in seen().items() if name == "concurrency"}
    told = {name: (found[name].status, found[name].remedy) for name in found}
    update = "aws lambda update-function-configuration --function-name soal"
    for name, status, remedy in (
        ("timeout", "fail", f"{update} --timeout 900"),
        ("memory", "fail", f"{update} --memory-size 3008"),
        ("storage", "warn", f"{update} --ephemeral-storage Size=2048"),
        ("command", "fail", f"{update} --image-config Command=handler.app.lambda_handler"),
        ("secrets", "warn", "Secrets Manager"),
        ("endpoint", "warn", "unset it"),
        ("environment", "warn", "unset SOAL_ERRORS"),
        ("concurrency", "fail", "aws lambda delete-function-concurrency --function-name soal"),
        ("failures", "warn", "aws lambda put-function-event-invoke-config --function-name soal"),
        ("dead letters", "warn", "aws sqs set-queue-attributes --queue-url"),
        ("batch size", "fail", "--batch-size 1"),
        ("queue", "fail", "--attributes VisibilityTimeout=18"),
        ("lifecycle", "fail", "go without a rule that expires open/"),
        ("retention", "fail", "an expiration of more than"),
        ("script", "fail", "aws s3 cp YOUR_SCRIPT.py s3://scripts/job.py"),
    ):
        assert told[name][0] == status, (name, found[name])
        assert remedy in told[name][1], (name, found[name])


@pytest.mark.parametrize(
    ("account", "name", "status", "detail"),
    [
        (Account(lifecycle={}), "retention", "warn", "never expire"),
        (Account(tagged=("notes",)), "lifecycle", "fail", "checkpoints/ expires, also for open writes"),
        (Account(lifecycle={**DAYS_20, "": 90}), "lifecycle", "fail", "checkpoints, notes, open, audit/ expires"),
        (Account(tagged=(*FOLDERS,)), "retention", "warn", "never expire"),
        (Account(variables={"SW_CHECKPOINT_BUCKET": "B!"}), "environment", "fail", "SW_CHECKPOINT_BUCKET"),
        (Account(variables={"SW_CHECKPOINT_BUCKET": "missing"}), "retention", "warn", "NoSuchBucket"),
        (Account(settings={"MemorySize": 1024}), "memory", "warn", "less than one processor"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_more_that_can_be_wrong(account: Account, name: str, status: str, detail: str) -> None:
    """Each account has one fault, which the named check reports with a fitting text."""
    found = look(account)[name]
    assert (found.status, detail in found.detail) == (status, True), found


DURABLE = {"DurableConfig": {"ExecutionTimeout": 3600, "RetentionPeriodInDays": 14}}
QUEUED = {**DURABLE, "DeadLetterConfig": {"TargetArn": QUEUE.format("failures")}}
HANDLER = {"ImageConfigResponse": {"ImageConfig": {"Command": ["handler.functions.durable.lambda_handler"]}}}


@pytest.mark.parametrize(
    ("configured", "name", "status", "remedy"),
    [
        ({**QUEUED, **HANDLER}, "failures", "ok", ""),
        ({**DURABLE, **HANDLER}, "failures", "warn", "--dead-letter-config TargetArn=QUEUE_ARN"),
        (QUEUED, "command", "fail", "--image-config Command=handler.functions.durable.lambda_handler"),
        (HANDLER, "command", "fail", "--image-config Command=handler.app.lambda_handler"),
        ({**QUEUED, **HANDLER}, "retries", "warn", "--maximum-retry-attempts 0"),
    ],
    ids=["a queue", "no queue", "the plain command", "the durable command", "retries"],
)
def test_a_durable_function_has_a_dead_letter_queue_and_a_command_of_its_own(
    monkeypatch: pytest.MonkeyPatch, configured: dict[str, Any], name: str, status: str, remedy: str
) -> None:
    """Failed executions need a dead-letter queue. Lambda's field is added to moto's answer, which lacks it."""
    make = boto3.client

    def client(service: str, **given: Any) -> Any:
        found = make(service, **given)  # type: ignore[call-overload]
        if service == "lambda":
            ask = found.get_function
            found.get_function = lambda **given: {
                **(answer := ask(**given)),
                "Configuration": {**answer["Configuration"], **configured},
            }
        return found

    Account(destination=False).make()  # no event settings, so Lambda retries an event twice
    monkeypatch.setattr(boto3, "client", client)
    found = seen()[name]
    assert (found.status, remedy in found.remedy) == (status, True), found


def test_a_durable_function_s_role_must_keep_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A durable function's role needs two more rights, without which no attempt can begin."""
    Account().make()
    monkeypatch.setattr(DeployedFunction, "is_durable", property(lambda _: True))
    everything_else = Access(
        (*EVERYTHING.statements, Statement("No", "Deny", ("lambda:CheckpointDurableExecution",), ("*",)))
    )
    found = seen(access=everything_else)["role"]
    assert (found.status, "lambda:CheckpointDurableExecution" in found.detail) == ("fail", True), found


def test_variables_are_held_against_the_list() -> None:
    """An unknown variable is found, and a reference to a secret is not reported as a secret."""
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:lake-AbCdEf"
    found = look(Account(variables={"SOAL_JITT": "c1", "SOAL_SECRETS": json.dumps({"PGPASSWORD": arn})}))
    assert (found["variables"].status, found["variables"].remedy) == ("warn", "did you mean SOAL_JIT?")
    assert "secrets" not in found
    assert found["environment"].status == "ok"


def test_a_function_is_looked_at_by_the_alias_that_is_invoked() -> None:
    """With one alias its event settings are examined; with several, or a given qualifier, the name decides."""
    Account().make()
    lambda_ = boto3.client("lambda")
    assert _as_invoked(lambda_, "soal") == "soal"
    version = lambda_.publish_version(FunctionName="soal")["Version"]
    lambda_.create_alias(FunctionName="soal", Name="live", FunctionVersion=version)
    arn = "arn:aws:lambda:us-east-1:123456789012:function:soal:7"
    assert [_as_invoked(lambda_, name) for name in ("soal", "soal:7", arn)] == ["soal:live", "soal:7", arn]
    assert seen()["failures"].status == "ok"
    lambda_.create_alias(FunctionName="soal", Name="other", FunctionVersion=version)
    assert _as_invoked(lambda_, "soal") == "soal"


class Denied:
    """An API that denies one of its operations; a boto3 client answers all others."""

    def __init__(self, client: Any, operation: str) -> None:
        self._client, self._operation = client, operation

    def __getattr__(self, name: str) -> Any:
        return self._deny if name == self._operation else getattr(self._client, name)

    def _deny(self, **_: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, self._operation)


@pytest.mark.parametrize(
    ("operation", "name", "absent"),
    [
        ("list_aliases", "alias", ("failures", "retries", "asynchronous events", "queue", "queues")),
        ("get_function_event_invoke_config", "asynchronous events", ("failures", "retries")),
        ("list_event_source_mappings", "queues", ("queue",)),
        ("get_queue_attributes", "queues", ("queue",)),
    ],
)
def test_what_the_caller_may_not_see_is_taken_for_nothing(operation: str, name: str, absent: tuple[str, ...]) -> None:
    """A denied look at alias, events or queues is a warning; then no finding says how events end, or that documents
    outlive them.
    """
    Account().make()

    def client(service: str) -> Any:
        made = simulating({ROLE: EVERYTHING}) if service == "iam" else boto3.client(service)  # type: ignore[call-overload]
        return Denied(made, operation)

    found = {each.name: each for each in examine_function("soal", client, TABLES)}
    for each in (name, "retention"):
        assert (found[each].status, found[each].detail[:21]) == ("warn", "could not be examined"), found[each]
        assert found[each].remedy
    assert found.keys().isdisjoint(absent)
    assert found["lifecycle"].status == "ok"


def test_an_image_that_is_gone() -> None:
    """An image that is gone is a finding: Lambda still runs its copy, but the next deployment fails."""
    Account().make()
    boto3.client("ecr").batch_delete_image(repositoryName="soal", imageIds=[{"imageTag": "one"}])
    assert seen()["image"].status == "fail"


def test_writes_that_nobody_has_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A marker older than any run is reported, with the command that settles it."""
    Account().make()
    boto3.client("s3").put_object(Bucket="checkpoints", Key="open/w/n", Body=b"")
    assert seen()["open writes"].status == "ok"
    monkeypatch.setattr("soal.doctor.buckets._SWEPT_AFTER", timedelta(days=-1))
    found = seen()["open writes"]
    assert (found.status, found.remedy) == ("warn", "soal recover --bucket checkpoints --dry-run")


def test_a_function_that_is_not_there() -> None:
    """If the function is missing, no further check runs."""
    found = seen("nowhere")
    assert list(found) == ["credentials", "function"]
    assert found["function"].status == "fail"


def test_a_function_whose_role_may_do_nothing() -> None:
    """A role without rights fails for objects, the failure destination and continuations, whoever the caller is."""
    Account(variables={"SOAL_CONTINUE_MAX": "1"}).make()
    assert seen()["role"].status == "ok"
    for action, resource in (
        ("s3:PutObject", "arn:aws:s3:::checkpoints/runs/*"),
        ("s3:GetObject", "arn:aws:s3:::scripts/*"),
        ("s3:GetObject", "arn:aws:s3:::lake/t/_delta_log/*"),
        ("sqs:SendMessage", QUEUE.format("failures")),
        ("lambda:InvokeFunction", "arn:aws:lambda:us-east-1:123456789012:function:soal"),
    ):
        deny = Statement("", "Deny", (action,), (resource,))
        found = seen(access=Access((*EVERYTHING.statements, deny)))
        assert found["role"].status == "fail", (action, found["role"])
        assert f"{action} on {resource}" in found["role"].detail
        assert found["checkpoint bucket"].status == "ok"


def test_tables_that_are_not_known_are_told() -> None:
    """Without known tables a finding says that rights on tables were not simulated."""
    Account().make()
    found = seen(tables=())
    assert (found["tables"].status, "--table" in found["tables"].remedy) == ("warn", True)
    assert "tables" not in seen()


class Odd:
    """A client of any service that answers every request alike, except the named requests."""

    def __init__(self, answer: object, **others: object) -> None:
        self._answer, self._others = answer, others

    def __getattr__(self, operation: str) -> Any:
        answer = self._others.get(operation, self._answer)

        def asked(*_: object, **__: object) -> object:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return asked


@pytest.mark.parametrize("answer", [{}, [], [1], None, "text", 5, ResponseParserError("no XML")])
def test_an_answer_that_aws_does_not_document_is_a_finding(answer: object) -> None:
    """An undocumented answer to any request is a finding, and does not end the examination."""
    who = {"Arn": "arn:aws:iam::123456789012:user/u"}
    known = {"FunctionName": "f", "FunctionArn": "arn:aws:lambda:us-east-1:123456789012:function:f"}
    variables = {"Variables": {"SW_CHECKPOINT_BUCKET": "checkpoints"}}
    whole = {"Configuration": {**known, "Environment": variables, "Role": 5}, "Code": {}}
    for others in (
        {},
        {"get_caller_identity": who},
        {
            "get_caller_identity": who,
            "list_aliases": {"Aliases": []},
            "get_function": {"Configuration": {}, "Code": {}},
        },
        {"get_caller_identity": who, "list_aliases": {"Aliases": []}, "get_function": whole},
    ):
        client = Odd(answer, **others)
        found = list(examine_function("f", lambda _, client=client: client))  # type: ignore[misc]
        assert any(one.status != "ok" and "unknown: an answer" in one.detail for one in found)
        if "get_function" not in others:
            assert found[-1].status == "fail"


class Managed:
    """Lambda's API with a function on Managed Instances, which moto does not know."""

    def __init__(self, number: int | None, client: Any) -> None:
        self._client, self._number = client, number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def get_function(self, **of: str) -> Any:
        found = self._client.get_function(**of)
        many = {} if self._number is None else {"PerExecutionEnvironmentMaxConcurrency": self._number}
        config = {"CapacityProviderArn": PROVIDER, **many}
        found["Configuration"] |= {"CapacityProviderConfig": {"LambdaManagedInstancesCapacityProviderConfig": config}}
        return found


PROVIDER = "arn:aws:lambda:us-east-1:123456789012:capacity-provider:spark"


@pytest.mark.parametrize(("number", "status"), [(1, "ok"), (2, "fail"), (None, "fail")])
def test_an_environment_of_several_events_is_found(number: int | None, status: str) -> None:
    """Its handler does not start; the remedy sets one event, and publishes the version that has it."""
    Account().make()

    def client(service: str) -> Any:
        made = simulating({ROLE: EVERYTHING}) if service == "iam" else boto3.client(service)  # type: ignore[call-overload]
        return Managed(number, made) if service == "lambda" else made

    (found,) = (each for each in examine_function("soal", client) if each.name == "capacity provider")
    assert found.status == status
    assert status == "ok" or '"PerExecutionEnvironmentMaxConcurrency": 1' in found.remedy
    assert [complaint(one) for one in commands(found.remedy)] in ([], [None, None])


@pytest.mark.parametrize(("timeout_s", "said"), [(900, "none is older than 1 h"), (5400, "none is older than 2.25 h")])
def test_a_write_is_old_when_no_run_of_the_function_lives_as_long(timeout_s: int, said: str) -> None:
    """A function of 90 minutes may have a write open for so long."""
    found = look(Account(settings={"Timeout": timeout_s}))
    assert found["open writes"].detail == said
