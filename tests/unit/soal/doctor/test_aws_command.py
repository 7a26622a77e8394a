"""The oracle for remedies: the service's model in botocore."""

from __future__ import annotations

import pytest

from tests.support.aws_command import commands, complaint

CONFIG = "aws lambda put-function-event-invoke-config --function-name f"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (f"{CONFIG} --qualifier live", None),
        (f'{CONFIG} --destination-config \'{{"OnFailure": {{"Destination": "ARN"}}}}\'', None),
        (f"{CONFIG} --destination-config '{{\"OnFail\": {{}}}}'", "OnFail"),
        (f"{CONFIG} --alias live", "there is no option alias"),
        (f"{CONFIG} --qualifier", "qualifier has no value"),
        (f"{CONFIG} live", "function-name has 2 values"),
        ("aws lambda put-function-event-invoke-config --qualifier live", "lacks FunctionName"),
        ("aws lambda put-function-config --function-name f", "no operation"),
        ("aws sqs set-queue-attributes --queue-url u --attributes VisibilityTimeout=60", None),
        ("aws lambda update-function-configuration --function-name f --memory-size many", "invalid literal"),
        ("aws lambda update-function-configuration --function-name f --ephemeral-storage Size=2048", None),
        ("aws lambda update-function-configuration --function-name f --environment file://e.json", None),
        ("aws s3 cp a.py s3://b/a.py", None),
    ],
)
def test_a_command_is_held_against_the_service_s_model(command: str, told: str | None) -> None:
    """The model checks operation, options, required options and the types of values, also in JSON."""
    try:
        found = complaint(command)
    except ValueError as error:
        found = str(error)
    assert (found is None) if told is None else (found is not None and told in found), found


def test_commands_are_found_between_semicolons() -> None:
    """Commands are found in a remedy, which may be a command, text, or both."""
    assert list(commands("aws a b --c d > e; then change it; do: aws f g; the role needs it")) == [
        "aws a b --c d > e",
        "aws f g",
    ]
