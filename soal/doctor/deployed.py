"""The deployed function that the doctor examines, and the facts known so far."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from soal.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

__all__ = ["DeployedFunction", "command", "look", "look_for", "split_qualifier"]

_T = TypeVar("_T")


@dataclass(slots=True)
class DeployedFunction:
    """A function by name or ARN. `client` makes a client for a service."""

    name: str
    client: Callable[[str], Any]
    configuration: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, Any] = field(default_factory=dict)
    replay_s: int = 0
    """How long after its first delivery an event can still be delivered again."""
    destination: str | None = None
    """The destination of a failed asynchronous event."""

    @property
    def plain_name(self) -> str:
        """The name alone, as the service calls it."""
        return str(self.configuration["FunctionName"])

    @property
    def is_durable(self) -> bool:
        """Whether an event is an execution of several invocations."""
        return bool(self.configuration.get("DurableConfig"))

    @property
    def arn(self) -> str:
        """The ARN without a version or alias."""
        return split_qualifier(str(self.configuration["FunctionArn"]))[0]

    def update(self, option: str) -> str:
        """Return the command that changes a setting."""
        return f"aws lambda update-function-configuration --function-name {self.plain_name} {option}"

    def correct(self, variable: str) -> str:
        """Return the commands that change a variable: the service replaces all of them at once."""
        query = "{Variables: Environment.Variables}"
        shown = command("lambda", "get-function-configuration", function_name=self.plain_name, query=query)
        changed = self.update("--environment file://environment.json")
        return f"{shown} > environment.json; correct {variable} in that file; {changed}"


def split_qualifier(name: str) -> tuple[str, str | None]:
    """Split a version or alias off: `f:live`, or the eighth part of an ARN."""
    parts = name.split(":")
    has_one = len(parts) == 8 if name.startswith("arn:") else len(parts) == 2  # noqa: PLR2004 - as documented by AWS
    return (name.rpartition(":")[0], parts[-1]) if has_one else (name, None)


def command(service: str, operation: str, **options: str) -> str:
    """Return a command of the AWS CLI, quoted for a shell; `function_name` becomes `--function-name`."""
    given = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    return shlex.join(["aws", service, operation, *given])


def look(name: str, at: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Run a check; if the caller may not read something, or an answer is none that AWS documents, yield a warning and
    continue.
    """

    def checked() -> Generator[Finding, None, None]:
        yield from at()

    yield from look_for(name, checked)


def look_for(
    name: str, at: Callable[[], Generator[Finding, None, _T]], odd: Literal["warn", "fail"] = "warn"
) -> Generator[Finding, None, _T | None]:
    """Run a check as `look` does; return what it returns, or None. `odd`: what such an answer is."""
    try:
        return (yield from at())
    except (BotoCoreError, ClientError) as error:
        yield Finding(name, "warn", f"could not be examined: {error}", "allow it to your own user, and try again")
    except (ResponseParserError, LookupError, TypeError, ValueError, AttributeError) as error:
        detail = f"unknown: an answer is none that AWS documents ({error!r})"
        yield Finding(name, odd, detail, "try again; if AWS_ENDPOINT_URL… or --endpoint-url is set, look there")
    return None
