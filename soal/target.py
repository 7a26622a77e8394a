"""The S3 that a command uses: that of the caller's AWS configuration, a given endpoint, or the local S3.

The local S3 has the Iceberg catalog `local` if `soal local up --iceberg` has started it.
"""

from __future__ import annotations

import functools
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from safewriter.errors import SettingError
from safewriter.objects import StoreError
from safewriter.objects.s3 import S3ObjectStore, s3_client
from safewriter.settings import bucket_of
from soal.console.problem import Failure, Problem
from soal.local.names import CATALOG, CHECKPOINTS, CREDENTIALS, rest_properties
from soal.local.state import running
from soal.remote.failure import failed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import boto3.session
    from botocore.credentials import Credentials
    from mypy_boto3_s3 import S3Client

    from safewriter.objects import Location
    from soal.home import Home

_DEFAULT_REGION: Final = "us-east-1"
_CONNECT_S: Final = 3
_READ_S: Final = 10


@dataclass(frozen=True)
class Target:
    """An S3. `endpoint` None: that of the caller's AWS configuration; else `aws` are the variables for its clients.

    `is_local`: `soal local up` runs it. `catalogs` are the properties of its Iceberg catalogs, for pyiceberg.
    """

    endpoint: str | None
    aws: Mapping[str, str] = field(default_factory=dict)
    is_local: bool = False
    catalogs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def client(self) -> S3Client:
        """Return a client with timeouts. Raises `Problem` without credentials."""
        import boto3

        if self.endpoint is None:
            _require_credentials(boto3.session.Session())
            return s3_client(connect_timeout_s=_CONNECT_S, read_timeout_s=_READ_S)
        session = boto3.session.Session(
            aws_access_key_id=self.aws["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.aws["AWS_SECRET_ACCESS_KEY"],
            aws_session_token=self.aws.get("AWS_SESSION_TOKEN"),
            region_name=self.aws["AWS_REGION"],
        )
        return s3_client(connect_timeout_s=_CONNECT_S, read_timeout_s=_READ_S, endpoint=self.endpoint, session=session)

    def store(self, location: Location) -> S3ObjectStore:
        """Open a bucket or prefix; all stores share a client."""
        return S3ObjectStore(self._shared, location.bucket, location.key)

    @functools.cached_property
    def _shared(self) -> S3Client:
        return self.client()


def find_target(endpoint_url: str | None, home: Home, *, local: bool) -> Target:
    """Return the local S3, the S3 at an endpoint, or AWS's. Raises `Problem` if no local S3 runs."""
    if not local:
        return Target(None) if endpoint_url is None else _of_url(endpoint_url)
    if endpoint_url is not None:
        raise Problem("--local and --endpoint-url name two endpoints", todo="leave one of them out")
    state = running(home)
    if state is None:
        raise Problem("no local S3 runs", todo="start it with: soal local up")
    return local_target(state.endpoint, state.catalog)


def local_target(endpoint: str, catalog: str | None = None) -> Target:
    """Return a local S3 as a target. `catalog` is the URI of its Iceberg catalog."""
    catalogs = {} if catalog is None else {CATALOG: rest_properties(catalog)}
    return Target(endpoint, {**CREDENTIALS, "AWS_ENDPOINT_URL_S3": endpoint}, is_local=True, catalogs=catalogs)


def checkpoint_bucket(target: Target, bucket: str | None = None) -> str | None:
    """Return the checkpoint bucket: `bucket`, else SW_CHECKPOINT_BUCKET, else the local S3's, else None."""
    return bucket or os.environ.get("SW_CHECKPOINT_BUCKET") or (CHECKPOINTS if target.is_local else None)


def checkpoint_store(target: Target, bucket: str | None, home: Home) -> S3ObjectStore:
    """Open the checkpoint bucket. Raises `Problem` if none is named, or its name is invalid."""
    name = checkpoint_bucket(target, bucket)
    if not name:
        raise no_bucket("no checkpoint bucket is named", home)
    try:
        return target.store(bucket_of(name))
    except SettingError as error:
        raise Problem(str(error), todo="correct --bucket, or SW_CHECKPOINT_BUCKET") from error


def no_bucket(problem: str, home: Home, *other_ways: str) -> Problem:
    """Return the problem that no checkpoint bucket is named; it suggests `--local` if a local S3 runs."""
    state = running(home)
    ways = ["give --bucket, or set SW_CHECKPOINT_BUCKET", *other_ways]
    if state is not None:
        ways.append(f"for the local S3 at {state.endpoint} give --local")
    return Problem(problem, todo="; ".join(ways))


@contextmanager
def store_errors_as_problems() -> Iterator[None]:
    """Turn an S3 error, or a damaged record of a run, into a `Problem`."""
    try:
        yield
    except StoreError as error:
        from handler.runs.store import UnreadableRecordError  # it takes longer to import than the command line

        if isinstance(error, UnreadableRecordError):
            todo = (
                "restore an earlier version of the object, which the bucket keeps for some days; soal recover --run"
                " settles the run's writes without it"
            )
            raise Failure(str(error), todo=todo) from error
        todo = (
            "name a bucket that exists; the caller needs ListBucket and GetObject (and PutObject, to change anything)"
        )
        raise failed(str(error), error.__cause__, todo) from error


def _of_url(endpoint_url: str) -> Target:
    parts = urlsplit(endpoint_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Problem(f"--endpoint-url {endpoint_url}: not a URL", todo="give it as http(s)://host:port")
    import boto3

    session = boto3.session.Session()
    frozen = _require_credentials(session).get_frozen_credentials()
    region = session.region_name or _DEFAULT_REGION
    aws = {
        "AWS_ACCESS_KEY_ID": str(frozen.access_key),
        "AWS_SECRET_ACCESS_KEY": str(frozen.secret_key),
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_ENDPOINT_URL_S3": endpoint_url,
    }
    return Target(endpoint_url, aws | ({"AWS_SESSION_TOKEN": frozen.token} if frozen.token else {}))


def _require_credentials(session: boto3.session.Session) -> Credentials:
    credentials = session.get_credentials()
    if credentials is None:
        raise Problem(
            "there are no AWS credentials", todo="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        )
    return credentials
