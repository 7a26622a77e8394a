"""Check single settings: buckets or parts of them, images, names and references of secrets, schedules.

A secret in clear text is refused. EventBridge accepts `rate(…)` and `cron(…)`:
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-scheduled-rule-pattern.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from aws_cron_expression_validator.validator import AWSCronExpressionError, AWSCronExpressionValidator

from handler.redaction.secret_forms import secrets_in
from handler.redaction.secret_names import is_secret
from handler.spark_settings.fixed import why_fixed, why_not_secret
from handler.variables import CATALOG_VARIABLES, REFERENCE, RESERVED, SPARK_SETTING, VARIABLE_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
# Not IP addresses, consecutive dots, or names with prefixes and suffixes that S3 reserves.
_BUCKET: Final = re.compile(
    r"(?!xn--|sthree-|amzn-s3-demo-)(?![0-9]+(?:\.[0-9]+){3}$)(?!.*\.\.)(?!.*(?:-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)$)"
    r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
)
# Without a policy's wildcards, and without characters unusual in a key written by hand.
_PREFIX: Final = re.compile(r"[A-Za-z0-9!_.'()=@/ -]*")
_IMAGE: Final = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/(?P<name>[a-z0-9][a-z0-9._/-]*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})|@(?P<digest>sha256:[0-9a-f]{64}))"
)


@dataclass(frozen=True, slots=True)
class BucketPrefix:
    """A bucket, or all keys of it below `prefix` (without slashes at its ends; empty: the whole bucket)."""

    bucket: str
    prefix: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `bucket` or `bucket/prefix`, with or without `s3://`; `ValueError` describes the problem."""
        bucket, _, prefix = re.sub(r"^s3[an]?://", "", text).partition("/")
        if not _BUCKET.fullmatch(bucket):
            raise ValueError(f"{bucket!r} is no name of a bucket; write bucket or bucket/prefix")
        prefix = prefix.strip("/")
        if not _PREFIX.fullmatch(prefix):
            raise ValueError(f"{prefix!r} holds a character that a policy reads as a wildcard, or that is not ASCII")
        return cls(bucket, prefix)

    def key(self, pattern: str) -> str:
        """Return a key, or a pattern of keys, below the prefix."""
        return f"{self.prefix}/{pattern}" if self.prefix else pattern

    def is_below(self, other: BucketPrefix) -> bool:
        """Return whether `other` contains every key of this place."""
        path, other_path = (f"{place.prefix}/" if place.prefix else "" for place in (self, other))
        return self.bucket == other.bucket and path.startswith(other_path)

    def __str__(self) -> str:
        return f"{self.bucket}/{self.prefix}" if self.prefix else self.bucket


@dataclass(frozen=True, slots=True)
class ImageUri:
    """An image in a private ECR repository, the only kind that Lambda accepts; `reference` is its tag or digest."""

    account: str
    region: str
    repository: str
    reference: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME:TAG` or `…/NAME@sha256:…`; `ValueError` if it is neither."""
        match = _IMAGE.fullmatch(text)
        if match is None:
            raise ValueError(
                "is not an image of a private ECR repository with its tag or digest"
                " (ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME:TAG or …/NAME@sha256:…)"
            )
        return cls(match["account"], match["region"], match["name"], match["tag"] or match["digest"])

    @property
    def is_pinned(self) -> bool:
        """Whether the reference is a digest; a tag can move to another image, which Lambda would not notice."""
        return self.reference.startswith("sha256:")

    def __str__(self) -> str:
        domain = "amazonaws.com.cn" if self.region.startswith("cn-") else "amazonaws.com"
        mark = "@" if self.is_pinned else ":"
        return f"{self.account}.dkr.ecr.{self.region}.{domain}/{self.repository}{mark}{self.reference}"


def check_name(name: str) -> None:
    """Raise `ValueError` for a name that no variable of the job can have."""
    if not VARIABLE_NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is no name of a variable: Lambda takes a letter and then letters, digits and _, two at least"
        )
    if RESERVED.fullmatch(name):
        raise ValueError(f"{name} belongs to Lambda, Spark or SoAL; give the job a name of its own")


def check_setting(name: str, *, secret: bool = False) -> None:
    """Raise `ValueError` unless the name is a Spark setting that the handler allows the owner to set."""
    if not SPARK_SETTING.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a Spark setting; it must begin with 'spark.'")
    if (why := (why_not_secret if secret else why_fixed)(name)) is not None:
        raise ValueError(f"{name} may not be set: {why}")


def check_open(settings: Mapping[str, str]) -> None:
    """Raise `ValueError` for a variable or Spark setting with a secret in clear text, by the rules of log redaction."""
    for name, value in settings.items():
        if is_secret(name, value) or any(secrets_in(value)):
            raise ValueError(
                f"{name} carries a secret, which the template and the function would show; put it into"
                f' Secrets Manager and write secrets={{"{name}": "ARN of the secret"}} (or ARN#key for one of its keys)'
            )


def check_references(secrets: Mapping[str, str]) -> None:
    """Raise `ValueError` for an invalid variable or setting name, or a reference that a policy cannot name exactly."""
    for name, reference in secrets.items():
        if SPARK_SETTING.fullmatch(name):
            check_setting(name, secret=True)
        else:
            check_name(name)
        if not REFERENCE.fullmatch(reference):
            raise ValueError(
                f"what is given for {name} is not the whole ARN of a secret with the six characters at its end, without"
                " which a policy would allow other secrets too; aws secretsmanager describe-secret --secret-id NAME"
                " --query ARN says it (and #key behind it takes one key of a secret that is a JSON object)"
            )


def is_of_catalogs(name: str) -> bool:
    """Return whether a variable gives access to catalogs."""
    return name.upper().startswith(CATALOG_VARIABLES)


_MAX_LENGTH: Final = 256
_FORM: Final = re.compile(r"(rate|cron)\(([^()]*)\)")
_RATE: Final = re.compile(r"([1-9][0-9]{0,8}) (minute|hour|day)(s?)")
# The package accepts these forms, which EventBridge's reference does not have.
_UNDOCUMENTED: Final = re.compile(r"\*-|-\*|L-")


def check_schedule(schedule: str) -> str:
    """Return the expression unchanged; `ValueError` says what is wrong, and what to write instead."""
    form = _FORM.fullmatch(schedule)
    if form is None or len(schedule) > _MAX_LENGTH:
        raise ValueError("must be rate(…) or cron(…), as rate(1 day) or cron(0 3 * * ? *)")
    kind, text = form.groups()
    if kind == "rate":
        _check_rate(text)
    else:
        _check_cron(text)
    return schedule


def _check_rate(text: str) -> None:
    rate = _RATE.fullmatch(text)
    if rate is None:
        raise ValueError("a rate is a whole number from 1 and minutes, hours or days, as rate(2 days)")
    number, unit, plural = rate.groups()
    if (number == "1") == bool(plural):
        raise ValueError(f"write rate({number} {unit}{'' if number == '1' else 's'})")


def _check_cron(text: str) -> None:
    problem = f"{text!r} has a range without an end." if _UNDOCUMENTED.search(text) else _refusal(text)
    if problem is not None:
        raise ValueError(
            f"{problem} A cron expression has six fields: minutes, hours, day of the month, month, day of the week (one"
            " of the two days is ?), year; as cron(0 3 * * ? *)"
        )


def _refusal(text: str) -> str | None:
    try:
        AWSCronExpressionValidator.validate(text)
    except AWSCronExpressionError as error:
        return str(error)
    return None
