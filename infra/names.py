"""Names of resources outside the stack in the forms that the services accept; other names are refused."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator

_KEY_ARN: Final = re.compile(
    r"arn:aws(-[a-z-]+)?:kms:[a-z]{2}(-[a-z]+)+-[0-9]:[0-9]{12}:key/"
    r"([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})"
)
# Glue stores names in lower case, so a policy on another spelling would allow nothing. Glue accepts other characters,
# too (blanks, slashes, *), which mean something else in a policy, or nothing in Spark's SQL.
_DATABASE: Final = re.compile(r"[a-z0-9_][a-z0-9_-]{0,254}")
# https://docs.aws.amazon.com/lambda/latest/api/API_LambdaManagedInstancesCapacityProviderConfig.html
_CAPACITY_PROVIDER: Final = re.compile(
    r"arn:aws(-[a-z-]+)?:lambda:[a-z]{2}(-[a-z]+)+-[0-9]:[0-9]{12}:capacity-provider:[a-zA-Z0-9_-]+"
)
_ZONE: Final = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9](-[a-z]{3}-[0-9])?[a-z]")


def _key_arn(value: str) -> str:
    if ":alias/" in value or value.startswith("alias/"):
        raise ValueError(
            f"{value} is an alias, which a policy cannot name as a resource; give the key's ARN:"
            f" aws kms describe-key --key-id {value} --query KeyMetadata.Arn"
        )
    if not _KEY_ARN.fullmatch(value):
        raise ValueError(f"{value!r} is not the ARN of a key, arn:aws:kms:REGION:ACCOUNT:key/ID")
    return value


def _database(value: str) -> str:
    if not _DATABASE.fullmatch(value):
        raise ValueError(
            f"{value!r} is no name of a Glue database: small letters, digits, _ and -, 255 at most; a policy names each"
        )
    return value


def _capacity_provider(value: str) -> str:
    if not _CAPACITY_PROVIDER.fullmatch(value):
        raise ValueError(
            f"{value!r} is not the ARN of a capacity provider, arn:aws:lambda:REGION:ACCOUNT:capacity-provider:NAME"
        )
    return value


def _zone(value: str) -> str:
    if not _ZONE.fullmatch(value):
        raise ValueError(f"{value!r} is no availability zone, as eu-west-1a")
    return value


def _id(kind: str) -> AfterValidator:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/resource-ids.html
    form = re.compile(rf"{kind}-([0-9a-f]{{8}}|[0-9a-f]{{17}})")

    def check(value: str) -> str:
        if not form.fullmatch(value):
            raise ValueError(f"{value!r} is not {kind}- and 8 or 17 hexadecimal digits")
        return value

    return AfterValidator(check)


KeyArn = Annotated[str, AfterValidator(_key_arn)]
Database = Annotated[str, AfterValidator(_database)]
CapacityProviderArn = Annotated[str, AfterValidator(_capacity_provider)]
Zone = Annotated[str, AfterValidator(_zone)]
VpcId = Annotated[str, _id("vpc")]
SubnetId = Annotated[str, _id("subnet")]
SecurityGroupId = Annotated[str, _id("sg")]
