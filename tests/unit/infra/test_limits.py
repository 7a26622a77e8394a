"""SoAL's limits against those in the services' own models, which botocore ships."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from botocore.session import Session

from handler.variables import VARIABLE_NAME
from infra.config import Config
from infra.context import read_context

if TYPE_CHECKING:
    from botocore.model import Shape


def shape(service: str, name: str) -> Shape:
    return Session().get_service_model(service).shape_for(name)


def bounds(key: str) -> tuple[int | None, int | None]:
    """Return the least and the greatest value (or number of entries) of a context key."""
    found: dict[str, Any] = {}
    metadata = [*Config.model_fields[key].metadata]
    for part in getattr(Config.model_fields[key].annotation, "__args__", ()):  # Annotated[…] | None
        metadata += getattr(part, "__metadata__", ())
    for one in metadata:
        for each in (one, *getattr(one, "metadata", ())):
            found |= {name: getattr(each, name) for name in ("ge", "le", "max_length") if hasattr(each, name)}
    return found.get("ge"), found.get("le", found.get("max_length"))


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("timeout_s", "Timeout"),
        ("memory_mb", "MemorySize"),
        ("ephemeral_storage_mb", "EphemeralStorageSize"),
        ("retry_attempts", "MaximumRetryAttempts"),
        ("max_event_age_s", "MaximumEventAgeInSeconds"),
        ("reserved_concurrency", "ReservedConcurrentExecutions"),
        ("provisioned_concurrency", "PositiveInteger"),
        ("queue_concurrency", "MaximumConcurrency"),
        ("subnet_ids", "SubnetIds"),
        ("security_group_ids", "SecurityGroupIds"),
    ],
)
def test_no_number_is_taken_that_lambda_would_refuse(key: str, name: str) -> None:
    """SoAL's limits are within Lambda's."""
    of_lambda = shape("lambda", name).metadata
    least, most = bounds(key)

    assert least is not None or most is not None
    assert least is None or least >= of_lambda["min"]
    assert most is None or most <= of_lambda.get("max", most)


@pytest.mark.parametrize("name", ["A", "AB", "a_", "A1", "_A", "1A", "A-B", "A B", "A.B", "\u00c4B", "AB\n", ""])
def test_names_of_variables_are_lambdas(name: str) -> None:
    """SoAL refuses one-letter names, as Lambda does."""
    pattern = str(Session().get_service_model("lambda").shape_for("EnvironmentVariableName").metadata["pattern"])

    assert bool(re.fullmatch(VARIABLE_NAME, name)) == bool(re.fullmatch(pattern, name))


def test_days_of_logs_are_those_that_cloudwatch_lists() -> None:
    """CloudWatch's model lists them in a sentence."""
    text = shape("logs", "Days").documentation
    (listed,) = re.findall(r"Possible values are: ([0-9, and]+)\.", text)
    days = [int(number) for number in re.findall(r"[0-9]+", listed)]

    assert [read_context({"log_retention_days": day}).log_retention_days for day in days] == days


@pytest.mark.parametrize("name", ["Soal", "a-1", "1a", "a b", "a_b", "-a", "a" * 128])
def test_names_of_stacks_are_cloudformations(name: str) -> None:
    """CloudFormation's pattern covers names and ARNs; SoAL uses the part for names."""
    pattern = str(shape("cloudformation", "StackNameOrId").metadata["pattern"]).partition("|")[0]
    field = next(one for one in Config.model_fields["stack_name"].metadata if hasattr(one, "pattern"))

    assert bool(re.fullmatch(field.pattern, name)) == bool(re.fullmatch(pattern, name))
