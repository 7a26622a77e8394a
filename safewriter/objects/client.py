"""Clients of AWS's services, which take no answer but the service's own.

A proxy that wants a log-in answers any request with status 200 and a page. botocore reads it as an answer without
fields: as a write that is done, or as an item that is not there. AWS puts a request id into each answer:
https://docs.aws.amazon.com/AmazonS3/latest/API/get-request-ids.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.LowLevelAPI.html
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.exceptions import BotoCoreError

if TYPE_CHECKING:
    from boto3.session import Session
    from botocore.config import Config
    from botocore.loaders import Loader

__all__ = ["ForeignAnswerError", "client_of", "own_answers", "queued_id", "read_description"]

_T = TypeVar("_T")

_REQUEST_IDS: Final = ("x-amzn-requestid", "x-amz-request-id")
_ERROR: Final = 300
"""From this status on botocore raises an error, and nobody takes the answer for a success."""
_QUEUED: Final = 202


class ForeignAnswerError(BotoCoreError):
    """A successful answer that is not the service's: that of a proxy, or of another server. The outcome is unknown."""

    fmt = "this answer ({status}) is not from {service}: it has no request id. Check the network, a proxy, the endpoint"


def client_of(
    service: str,
    config: Config,
    *,
    endpoint: str | None = None,
    region: str | None = None,
    session: Session | None = None,
) -> Any:  # noqa: ANN401 - a boto3 client
    """Make a client whose calls raise `ForeignAnswerError` for an answer of another server.

    Region, credentials and endpoint come from the environment as always with boto3, unless they are given.
    """
    session = session or _session()
    return own_answers(session.client(service, region_name=region, endpoint_url=endpoint, config=config))  # type: ignore[call-overload]


def read_description(service: str) -> None:
    """Read how a service is called, which is most of the time that a first client takes. Forks of this process have it
    then; nothing is sent, and no credentials are looked for.
    """
    nobody = _session(aws_access_key_id="none", aws_secret_access_key="none")  # noqa: S106 - none
    nobody.client(service, region_name="us-east-1")  # type: ignore[call-overload]


def _session(**credentials: str) -> Session:
    """Return a session of its own, with the descriptions of services that this process has read."""
    import boto3  # late, since it takes an eighth of a second: Java starts meanwhile
    import botocore.session

    core = botocore.session.get_session()
    loader = _loader(core.get_config_variable("data_path"))
    core.register_component("data_loader", loader)
    session = boto3.session.Session(botocore_session=core, **credentials)
    loader.search_paths[:] = dict.fromkeys(loader.search_paths)  # boto3 adds its own each time
    return session


@functools.cache
def _loader(folders: str | None) -> Loader:
    from botocore.loaders import create_loader

    return create_loader(folders)


def own_answers(client: _T) -> _T:
    """Return the client, whose calls from now on raise `ForeignAnswerError` for an answer of another server."""
    events: Any = client.meta.events  # type: ignore[attr-defined]
    events.register("before-parse", _refuse_foreign, unique_id="soal-own-answers")
    return client


def _refuse_foreign(operation_model: Any, response_dict: Any, **_: Any) -> None:  # noqa: ANN401 - botocore's own
    status, headers = response_dict["status_code"], response_dict["headers"]
    if status < _ERROR and not any(headers.get(name) for name in _REQUEST_IDS):
        raise ForeignAnswerError(status=status, service=operation_model.service_model.service_id)


def queued_id(answer: Any) -> str:  # noqa: ANN401 - what boto3 answers
    """Return the request id of an asynchronous invocation.

    Raises `ForeignAnswerError` unless the answer says that Lambda has queued the event, which no other status does.
    """
    request_id = answer["ResponseMetadata"].get("RequestId")
    if answer["StatusCode"] != _QUEUED or not request_id:
        raise ForeignAnswerError(status=answer["StatusCode"], service="Lambda's queue")
    return str(request_id)
