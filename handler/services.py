"""The handler's effects on the outside, in one value; tests replace them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from handler.credentials import credentials_for_java
from handler.process.child import start
from handler.secrets import Secrets, read_secrets
from handler.stages.reuse import Reuse
from safewriter.deadline import epoch_ms
from safewriter.objects.client import client_of, queued_id
from safewriter.objects.s3 import open_store, shared_client
from safewriter.settle.supervisor import Supervision

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from handler.secrets import SecretReference
    from safewriter.deadline import Clock
    from safewriter.objects import Location, ObjectStore

__all__ = ["Services"]


def _invoke(function: str, payload: bytes) -> str:
    """Invoke a function asynchronously; return the request id."""
    from botocore.config import Config

    config = Config(connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 2})
    client = client_of("lambda", config)
    return queued_id(client.invoke(FunctionName=function, InvocationType="Event", Payload=payload))


@dataclass(frozen=True, slots=True)
class Services:
    """S3, the child process, settling, Lambda, Secrets Manager, the clock, the idle JVM, and the variables that lead
    the JVM to the role's credentials.
    """

    client: Callable[[], Any] = lambda: shared_client(tries=3)
    store: Callable[[Location], ObjectStore] = open_store
    start_child: Callable[..., AbstractContextManager[Any]] = start
    supervision: Callable[..., Supervision] = Supervision
    invoke: Callable[[str, bytes], str] = _invoke
    read_secrets: Callable[[Mapping[str, SecretReference]], Secrets] = read_secrets
    clock: Clock = epoch_ms
    reuse: Reuse = field(default_factory=Reuse)
    credentials: Callable[[], Mapping[str, str]] = credentials_for_java
