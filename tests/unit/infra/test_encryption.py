"""The stack's own KMS key, on request only, encrypts all that is stored, and is used through services alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised


def test_without_a_key_the_services_encrypt_with_theirs(plain: Synthesised) -> None:
    """A key costs by the month, so the stack creates one only on request."""
    assert plain.of_type("KMS::Key") == {}


def test_the_key_turns_and_encrypts_everything_that_is_stored(full: Synthesised) -> None:
    """Buckets, queues, topic and log groups use the key."""
    ((name, key),) = full.of_type("KMS::Key").items()
    arn = {"Fn::GetAtt": [name, "Arn"]}

    assert key["EnableKeyRotation"] is True
    for bucket in full.of_type("S3::Bucket").values():
        (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": arn}
        assert rule["BucketKeyEnabled"] is True
    assert all(queue["KmsMasterKeyId"] == arn for queue in full.of_type("SQS::Queue").values())
    assert all(topic["KmsMasterKeyId"] == arn for topic in full.of_type("SNS::Topic").values())
    assert all(group["KmsKeyId"] == arn for group in full.of_type("Logs::LogGroup").values())


def test_variables_of_every_function_are_encrypted_with_it(full: Synthesised, plain: Synthesised) -> None:
    """Each role may decrypt them; otherwise Lambda could not start the function."""
    (name,) = full.of_type("KMS::Key")
    functions = full.of_type("Lambda::Function").values()

    assert len(functions) == 3
    assert all(each["KmsKeyArn"] == {"Fn::GetAtt": [name, "Arn"]} for each in functions)
    for role in ("RuntimeJobRole", "SweeperSweepRole", "RedriveAgainRole"):
        arn = f"arn:aws:kms:us-east-1:123456789012:key/{name.lower()}"
        assert full.access(role).may("kms:Decrypt", arn, kms_ViaService="lambda.us-east-1.amazonaws.com")
    assert not any("KmsKeyArn" in each for each in plain.of_type("Lambda::Function").values())


@pytest.mark.parametrize(
    ("role", "services"),
    [
        ("RuntimeJobRole", {"s3", "sqs", "lambda"}),
        ("SweeperSweepRole", {"s3", "lambda"}),
        ("RedriveAgainRole", {"sqs", "lambda"}),
    ],
)
def test_a_function_uses_the_key_by_way_of_services_only(full: Synthesised, role: str, services: set[str]) -> None:
    """The function reads and writes encrypted data; it can neither use the key directly, nor delete or grant it."""
    (name,) = full.of_type("KMS::Key")
    arn = f"arn:aws:kms:us-east-1:123456789012:key/{name.lower()}"
    access = full.access(role)

    for action in ("kms:Decrypt", "kms:GenerateDataKey"):
        assert not access.may(action, arn)
        for service in ("s3", "sqs", "lambda", "logs", "sns"):
            via = f"{service}.us-east-1.amazonaws.com"
            assert access.may(action, arn, kms_ViaService=via) is (service in services)
    for action in ("kms:Encrypt", "kms:ScheduleKeyDeletion", "kms:PutKeyPolicy", "kms:CreateGrant"):
        assert not access.may(action, arn, kms_ViaService="s3.us-east-1.amazonaws.com")


def test_services_use_the_key_for_this_account_only(full: Synthesised) -> None:
    """CloudWatch, CloudWatch Logs and EventBridge may encrypt with the key, each only for the stack's own resources."""
    document = full.resolved(full.the("KMS::Key")["KeyPolicy"])
    services = [each for each in document["Statement"] if "Service" in each["Principal"]]

    assert len(services) == 3
    for statement in services:
        assert "123456789012" in str(statement["Condition"])
