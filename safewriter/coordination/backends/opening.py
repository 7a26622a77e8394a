"""Open the lock service that `job.coordinator.backend` names."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from safewriter.coordination.configuration import PREFIX
from safewriter.errors import SettingError
from safewriter.objects.conditions import other_server

if TYPE_CHECKING:
    from safewriter.coordination.backend import Backend
    from safewriter.coordination.backends.s3 import S3Backend
    from safewriter.objects.s3 import S3ObjectStore

__all__ = ["backend_uri", "open_backend", "s3_backend"]

_TABLE: Final = re.compile(r"[A-Za-z0-9_.-]{3,255}")
"""https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html"""


# ZooKeeper reserves `/zookeeper`, and allows neither empty names nor `.` and `..`.
_ENSEMBLE: Final = re.compile(
    r"(?P<hosts>[\w.\[\]:-]+:\d+(,[\w.\[\]:-]+:\d+)*)/(?P<root>(?!zookeeper(/|$))\w[\w.-]*(/\w[\w.-]*)*)"
)


def s3_backend(store: S3ObjectStore) -> S3Backend:
    """Return the lock service in a bucket or prefix; any server but AWS's own is probed."""
    from safewriter.coordination.backends.s3 import S3Backend

    return S3Backend(store, server=other_server(store.endpoint))


def backend_uri(uri: str = "") -> str:
    """Return the URI of the lock service: the given one, else `SW_LOCKS`, else the checkpoint bucket."""
    return uri or os.environ.get("SW_LOCKS", "") or _checkpoint_bucket()


def open_backend(uri: str, *, lease_s: float = 30.0) -> Backend:
    """Open the lock service that `backend_uri` returns. Raises `SettingError` for a URI that names none.

    `lease_s`: after how many seconds without a message from this process a session ends, if the service has sessions.
    """
    uri = backend_uri(uri)
    scheme, _, rest = uri.partition("://")
    if scheme == "s3" and rest:
        from safewriter.objects.location import Location
        from safewriter.objects.s3 import open_store

        try:
            location = Location.parse(uri)
        except ValueError as error:
            raise SettingError(f"{PREFIX}backend", str(error)) from None
        return s3_backend(open_store(location))
    if scheme == "dynamodb" and _TABLE.fullmatch(rest):
        from safewriter.coordination.backends.dynamodb import DynamoDBBackend, dynamodb_client

        client = dynamodb_client()
        return DynamoDBBackend(client, rest, server=other_server(str(client.meta.endpoint_url)))
    if scheme == "memory" and rest:
        from safewriter.coordination.backends.memory import by_name

        return by_name(rest)
    if scheme == "zookeeper" and (match := _ENSEMBLE.fullmatch(rest)):
        try:
            from safewriter.coordination.backends.zookeeper import ZooKeeperBackend
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] != "kazoo":
                raise
            raise SettingError(
                f"{PREFIX}backend", f"{uri!r} needs the package kazoo; install soal[zookeeper]"
            ) from error
        return ZooKeeperBackend(match["hosts"], match["root"], lease_s=lease_s)
    raise SettingError(
        f"{PREFIX}backend",
        f"{uri!r} is none of s3://bucket/prefix, dynamodb://table, zookeeper://host:port/path, memory://name",
    )


def _checkpoint_bucket() -> str:
    from safewriter.settings import Settings

    return str(Settings.from_environment(os.environ).checkpoint_bucket)
