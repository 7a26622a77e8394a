"""The object store on S3, through boto3."""

from __future__ import annotations

import functools
import os
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote_plus

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from safewriter.objects.client import client_of
from safewriter.objects.conditions import WITNESSES, ignored, other_server
from safewriter.objects.location import Location
from safewriter.objects.rights import lacking
from safewriter.objects.store import PAGE, ListedObject, PreconditionFailed, StoredObject, StoreError, TooLarge, Upload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from boto3.session import Session
    from botocore.response import StreamingBody
    from mypy_boto3_s3 import S3Client

__all__ = [
    "S3ObjectStore",
    "code_of",
    "custom_endpoint",
    "failure",
    "forget_clients",
    "may_pass",
    "open_store",
    "s3_client",
    "table_store",
]

_T = TypeVar("_T")

PAUSES_S: Final = (0.05, 0.2)
_BLOCK: Final = 1 << 20
# 409 is a race between conditional writes that S3 did not decide: the client has to retry.
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
_CONFLICT: Final = "ConditionalRequestConflict"
_PRECONDITION: Final = ("PreconditionFailed", "412")
# A 404 without this code in its body is that of a proxy or another server, and says nothing about the object.
_MISSING: Final = "NoSuchKey"
# S3 also answers 403 to a GET of a missing key, for a caller without s3:ListBucket. So a 403 proves nothing.
_FORBIDDEN: Final = ("AccessDenied", "403")

# 501 is permanent: a store without tags returns it, for example.
_DENIED: Final = (
    *_FORBIDDEN,
    "NoSuchBucket",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "NotImplemented",
)
# Errors of a store without DeleteObjects, or of one that cannot parse the request.
_NO_BATCHES: Final = ("NotImplemented", "501", "MethodNotAllowed", "405", "MissingContentMD5", "MalformedXML")
_PASSING: Final = {"InternalError": 500, "SlowDown": 503, "ServiceUnavailable": 503}
_KEEPING: Final[set[str]] = set()
"""The servers that have kept the conditions of writes for this process, by their endpoints."""
_FAULTS: Final = (ClientError, BotoCoreError, ResponseParserError, UnicodeEncodeError)


def s3_client(
    *,
    connect_timeout_s: float = 2.0,
    read_timeout_s: float = 5.0,
    tries: int = 1,
    endpoint: str | None = None,
    session: Session | None = None,
) -> S3Client:
    """Make a client whose calls end in bounded time.

    boto3's own retries are off by default: a retried conditional PUT that had landed looks like a lost race, so the
    store below retries itself and reads back. Region and credentials come from the environment as always with boto3;
    so does the endpoint. A given endpoint or session replaces them.
    """
    from botocore.config import Config

    config = Config(
        connect_timeout=connect_timeout_s,
        read_timeout=read_timeout_s,
        retries={"total_max_attempts": tries, "mode": "standard"},
        s3={"addressing_style": "path"} if endpoint or custom_endpoint() else {},
        max_pool_connections=16,
    )
    client: S3Client = client_of("s3", config, endpoint=endpoint, session=session)
    return client


def custom_endpoint() -> str | None:
    """Return the endpoint that the environment names instead of AWS's own."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def shared_client(*, tries: int = 1) -> S3Client:
    """Return the client that this process shares; a changed environment gets a new one."""
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AWS_REGION")
    return _made_client(tries, *(os.environ.get(name) for name in names))


@functools.lru_cache(maxsize=4)
def _made_client(tries: int, *_environment: str | None) -> S3Client:
    return s3_client(tries=tries)


def forget_clients() -> None:
    """Drop the shared clients, with their connections and credentials. Who holds one goes on with it."""
    _made_client.cache_clear()


def open_store(location: Location) -> S3ObjectStore:
    """Open a bucket or prefix through the client that this process shares."""
    return S3ObjectStore(shared_client(), location.bucket, location.key)


def table_store(uri: str) -> S3ObjectStore:
    """Open the store of a table by its `s3://` URI."""
    return open_store(Location.parse(uri))


class S3ObjectStore:
    """One bucket (and prefix) of S3, or of anything that honours its conditional requests."""

    def __init__(
        self, client: S3Client, bucket: str, prefix: str = "", *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._sleep = sleep

    @property
    def endpoint(self) -> str:
        """The URL that requests go to, wherever it was set."""
        return str(self._client.meta.endpoint_url)

    def get(self, key: str, *, max_bytes: int | None = None) -> StoredObject | None:
        def request() -> StoredObject | None:
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + key)
                if max_bytes is not None and answer["ContentLength"] > max_bytes:
                    answer["Body"].close()
                    raise TooLarge(self.uri(key), answer["ContentLength"], max_bytes, answer["ETag"])
                body = answer["Body"].read()
            except ClientError as error:
                if code_of(error) == _MISSING:
                    return None
                raise
            return StoredObject(key, body, answer["ETag"], answer["LastModified"], _server_date(answer))

        return self._tried("GET", key, request)

    def stream(self, key: str) -> Iterator[bytes] | None:
        def request() -> StreamingBody | None:
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + key)
            except ClientError as error:
                if code_of(error) == _MISSING:
                    return None
                raise
            return answer["Body"]

        body = self._tried("GET", key, request)
        return None if body is None else self._blocks(key, body)

    def create(self, key: str, body: bytes, *, tag: str = "") -> str:
        return self._conditional(key, body, {"IfNoneMatch": "*"}, tag)

    def replace(self, key: str, body: bytes, *, etag: str, tag: str = "") -> str:
        return self._conditional(key, body, {"IfMatch": etag}, tag)

    def put(self, key: str, body: bytes) -> str:
        def request() -> str:
            answer = self._client.put_object(Bucket=self._bucket, Key=self._prefix + key, Body=body)
            return answer["ETag"]

        return self._tried("PUT", key, request)

    def delete(self, key: str) -> None:
        self._tried("DELETE", key, lambda: self._client.delete_object(Bucket=self._bucket, Key=self._prefix + key))

    def delete_all(self, keys: Sequence[str]) -> None:
        # DeleteObjects sends XML, which has no control characters. DeleteObject sends the key in the URL.
        self._delete_batch([key for key in keys if key.isprintable()])
        for key in keys:
            if not key.isprintable():
                self.delete(key)

    def _delete_batch(self, keys: Sequence[str]) -> None:
        batch = {"Objects": [{"Key": self._prefix + key} for key in keys], "Quiet": True}

        def request() -> bool:
            try:
                answer = self._client.delete_objects(Bucket=self._bucket, Delete=batch)  # type: ignore[arg-type]
            except ClientError as error:
                if code_of(error) in _NO_BATCHES:
                    return False
                raise
            for refused in answer.get("Errors", ()):
                raise _of_one(refused)
            return True

        # A single object is deleted by DeleteObject: not every store has DeleteObjects.
        if len(keys) <= 1 or not self._tried("DELETE", f"{keys[0]} and {len(keys) - 1} more", request):
            for key in keys:
                self.delete(key)

    def list(self, prefix: str, *, start_after: str = "", at_once: int = PAGE) -> Iterator[ListedObject]:
        size: dict[str, Any] = {"MaxKeys": at_once} if at_once < PAGE else {}
        more: dict[str, Any] = {"StartAfter": self._prefix + start_after} if start_after else {}
        while True:
            page = self._tried("LIST", prefix, functools.partial(self._page, prefix, {**size, **more}))
            for row in page.get("Contents", ()):
                yield ListedObject(row["Key"][len(self._prefix) :], row["Size"], row["LastModified"])
            if not page["IsTruncated"]:
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def uploads(self, prefix: str) -> Iterator[Upload]:
        more: dict[str, str] = {}
        while True:
            page = self._tried("LIST UPLOADS", prefix, functools.partial(self._uploads_page, prefix, more))
            # boto3 requests and decodes URL-encoded names by itself, but only in listings of objects.
            name = unquote_plus if page.get("EncodingType") == "url" else str
            for row in page.get("Uploads", ()):
                yield Upload(name(row["Key"])[len(self._prefix) :], row["UploadId"], row.get("Initiated"))
            if not page["IsTruncated"]:
                return
            more = {"KeyMarker": name(page["NextKeyMarker"]), "UploadIdMarker": page["NextUploadIdMarker"]}

    def abort(self, upload: Upload) -> None:
        def request() -> None:
            try:
                self._client.abort_multipart_upload(
                    Bucket=self._bucket, Key=self._prefix + upload.key, UploadId=upload.id
                )
            except ClientError as error:
                if code_of(error) != "NoSuchUpload":
                    raise

        self._tried("ABORT", upload.key, request)

    def check_conditions(self, key: str, body: bytes) -> None:
        server = other_server(self.endpoint)
        if not server or server in _KEEPING:
            return
        for header, condition in WITNESSES.items():
            if self._tried("PUT", key, functools.partial(self._is_put, key, body, condition)):
                raise ignored(server, self.uri(key), header)
        _KEEPING.add(server)

    def uri(self, key: str) -> str:
        return f"s3://{self._bucket}/{self._prefix}{key}"

    def _blocks(self, key: str, body: StreamingBody) -> Iterator[bytes]:
        with body:
            try:
                yield from body.iter_chunks(_BLOCK)
            except BotoCoreError as error:
                raise failure("GET", self.uri(key), error) from error

    def _uploads_page(self, prefix: str, more: dict[str, str]) -> Any:  # noqa: ANN401 - as below
        query: dict[str, Any] = {"Prefix": self._prefix + prefix, "EncodingType": "url", **more}
        return self._client.list_multipart_uploads(Bucket=self._bucket, **query)

    def _page(self, prefix: str, more: dict[str, Any]) -> Any:  # noqa: ANN401 - a boto3 TypedDict that only the caller reads
        return self._client.list_objects_v2(Bucket=self._bucket, Prefix=self._prefix + prefix, **more)

    def _conditional(self, key: str, body: bytes, condition: dict[str, str], tag: str) -> str:
        """Write under a condition; after any refusal or doubt read back: the bytes have an id of this process
        (`safewriter.entropy`), so equal ones are its own.
        """
        more: dict[str, Any] = {**condition, "Tagging": tag} if tag else {**condition}
        for number, pause_s in enumerate((*PAUSES_S, None)):
            try:
                answer = self._client.put_object(Bucket=self._bucket, Key=self._prefix + key, Body=body, **more)
                return answer["ETag"]
            except _FAULTS as error:
                stored = None if isinstance(error, UnicodeEncodeError) else self._read_back(key, len(body), error)
                if stored is not None and stored.body == body:
                    return stored.etag
                if isinstance(error, ClientError) and (code_of(error) in _PRECONDITION or _gone(error, condition)):
                    raise PreconditionFailed(self.uri(key)) from error
                if pause_s is None or not may_pass(error):
                    failed = failure("PUT", self.uri(key), error)
                    failed.denied = failed.denied and not number  # an earlier try had no answer, and may still land
                    raise failed from error
                self._sleep(pause_s)
        raise AssertionError

    def _is_put(self, key: str, body: bytes, condition: Mapping[str, Any]) -> bool:
        try:
            self._client.put_object(Bucket=self._bucket, Key=self._prefix + key, Body=body, **condition)
        except ClientError as error:
            if code_of(error) in _PRECONDITION:
                return False
            raise
        return True

    def _read_back(self, key: str, size: int, refusal: Exception) -> StoredObject | None:
        """Return the object after a PUT that failed; None if there is none, it is larger, or the read is denied.

        A 412 with a denied read raises: the object may be that of this very PUT, whose first answer was lost. After
        any other refusal the same PUT may be sent again: its condition makes that safe.
        """
        try:
            return self.get(key, max_bytes=size)
        except TooLarge:  # so it is not this PUT's
            return None
        except StoreError as error:
            is_there = isinstance(refusal, ClientError) and code_of(refusal) in _PRECONDITION
            if is_there or not error.denied:
                raise
            return None

    def _tried(self, verb: str, key: str, request: Callable[[], _T]) -> _T:
        for pause_s in (*PAUSES_S, None):
            try:
                return request()
            except _FAULTS as error:
                if pause_s is None or not may_pass(error):
                    raise failure(verb, self.uri(key), error) from error
                self._sleep(pause_s)
        raise AssertionError


def _gone(error: ClientError, condition: dict[str, str]) -> bool:
    """Return whether an `If-Match` was refused because the object is gone."""
    return "IfMatch" in condition and code_of(error) == _MISSING


def code_of(error: ClientError) -> str:
    """Return S3's code of an error."""
    return str(error.response.get("Error", {}).get("Code", ""))


def failure(verb: str, uri: str, error: Exception) -> StoreError:
    """Make the error of a request that failed for good."""
    if isinstance(error, UnicodeEncodeError):
        shown = uri.encode(errors="backslashreplace").decode()
        return StoreError(f"{verb} {shown}: no object has such a key: it is no text in UTF-8")
    code = code_of(error) if isinstance(error, ClientError) else ""
    if verb == "GET" and code in _FORBIDDEN:
        text = (
            f"GET {uri}: denied, or not there: {error}. Allow s3:GetObject on it, and s3:ListBucket on its bucket with"
            " its key as the prefix: without that S3 denies also what is not there"
        )
        return StoreError(text, denied=True)
    where = {"LIST": "its bucket, with this prefix", "LIST UPLOADS": "its bucket"}.get(verb, "it")
    return StoreError(f"{verb} {uri}: {error}{lacking(error, 's3', where)}", denied=code in _DENIED)


def _of_one(refused: Any) -> ClientError:  # noqa: ANN401 - a boto3 TypedDict
    """Return the error of one object in a successful response to DeleteObjects."""
    code = refused.get("Code", "")
    response: Any = {
        "Error": {"Code": code, "Message": f"{refused.get('Key')}: {refused.get('Message')}"},
        "ResponseMetadata": {"HTTPStatusCode": _PASSING.get(code, 400)},
    }
    return ClientError(response, "DeleteObjects")


def may_pass(error: Exception) -> bool:
    """Return whether the same request may succeed a moment later."""
    if not isinstance(error, ClientError):
        return not isinstance(error, UnicodeEncodeError)
    if code_of(error) in _DENIED:
        return False
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    return status >= 500 or status == 429 or code_of(error) in (_CONFLICT, "RequestTimeout")  # noqa: PLR2004


def _server_date(answer: Any) -> datetime:  # noqa: ANN401 - a boto3 TypedDict
    return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
