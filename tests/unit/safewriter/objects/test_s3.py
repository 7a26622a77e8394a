"""The object store on S3 interprets boto3's answers: missing, refused, lost race, retries, batches, odd keys."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import ANY, Stubber

from safewriter.objects import Location, PreconditionFailed, StoreError
from safewriter.objects.s3 import S3ObjectStore, open_store, s3_client, table_store
from safewriter.objects.store import Upload
from tests.support.page import PAGE, page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# How it behaves against a server stands in tests/contract/test_object_store.py.


def config_of() -> Any:
    return s3_client().meta.config


def test_a_client_gives_up_in_bounded_time_and_does_not_retry_by_itself() -> None:
    """A conditional write that was retried below us would look like a lost race."""
    config = config_of()

    assert (config.connect_timeout, config.read_timeout) == (2.0, 5.0)
    assert config.retries["total_max_attempts"] == 1
    assert config.max_pool_connections == 16  # as many as the sweeper has threads


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
def test_a_custom_endpoint_has_its_buckets_in_the_path(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A server on this machine has no names of buckets in its DNS."""
    monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert config_of().s3 == {"addressing_style": "path"}


def test_amazon_is_called_by_the_buckets_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a custom endpoint the addressing style stays the default."""
    monkeypatch.delenv("AWS_ENDPOINT_URL")

    assert not config_of().s3


def test_one_process_has_one_client_for_one_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm process does not build a client for each block, and notices new credentials."""
    first, second = open_store(Location("one")), open_store(Location("two", "prefix"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
    third = open_store(Location("one"))

    assert first._client is second._client
    assert third._client is not first._client


@pytest.mark.parametrize(
    ("prefix", "uri"),
    [("", "s3://lake/x"), ("a/b", "s3://lake/a/b/x"), ("a/b/", "s3://lake/a/b/x"), ("/", "s3://lake/x")],
)
def test_keys_are_relative_to_the_prefix(prefix: str, uri: str) -> None:
    """One slash between prefix and key, none before a key without one."""
    assert open_store(Location("lake", prefix)).uri("x") == uri


def test_a_table_is_opened_by_its_uri() -> None:
    """The store of a table is rooted at the table."""
    assert table_store("s3://lake/a/b").uri("_delta_log/") == "s3://lake/a/b/_delta_log/"


# -- what each answer means, with botocore's own model of S3 as the server ---------------------------------------------


class Stubbed:
    """A store on a client that returns scripted answers, and counts its naps."""

    def __init__(self) -> None:
        client = s3_client()
        self.answers = Stubber(client)
        self.naps: list[float] = []
        self.store = S3ObjectStore(client, "bucket", sleep=self.naps.append)

    def refuses(self, operation: str, code: str, status: int, times: int = 1) -> None:
        for _ in range(times):
            self.answers.add_client_error(operation, code, http_status_code=status)


@pytest.fixture
def stubbed() -> Iterator[Stubbed]:
    found = Stubbed()
    with found.answers:
        yield found
        found.answers.assert_no_pending_responses()


def test_only_s3s_own_words_say_that_an_object_is_missing(stubbed: Stubbed) -> None:
    """Botocore reports a 404 without S3's XML, as a proxy sends it, by its status: that says nothing."""
    stubbed.refuses("get_object", "NoSuchKey", 404)
    assert stubbed.store.get("key") is None
    stubbed.refuses("get_object", "404", 404)
    with pytest.raises(StoreError):
        stubbed.store.get("key")


@pytest.fixture
def proxied(request: pytest.FixtureRequest) -> Iterator[S3ObjectStore]:
    """A store whose endpoint answers each request with a page."""
    with page(str(request.param)) as endpoint:
        yield S3ObjectStore(s3_client(endpoint=endpoint), "bucket", sleep=lambda _: None)


@pytest.mark.parametrize("proxied", [PAGE, "<html><br>Log in", ""], indirect=True, ids=["XML", "HTML", "empty"])
@pytest.mark.parametrize(
    "asks",
    [
        lambda store: list(store.list("")),
        lambda store: list(store.uploads("")),
        lambda store: store.get("key"),
        lambda store: store.stream("key"),
        lambda store: store.put("key", b"body"),
        lambda store: store.create("key", b"body"),
        lambda store: store.delete("key"),
        lambda store: store.delete_all(["one", "two"]),
        lambda store: store.abort(Upload("key", "id")),
    ],
    ids=["list", "uploads", "get", "stream", "put", "create", "delete", "delete_all", "abort"],
)
def test_a_page_of_a_proxy_is_no_answer_of_s3(proxied: S3ObjectStore, asks: Callable[[S3ObjectStore], object]) -> None:
    """It is no empty listing, no object, no write and no deletion."""
    with pytest.raises(StoreError):
        asks(proxied)


@pytest.mark.parametrize("code", ["AccessDenied", "403"])
def test_a_denied_object_is_known_without_a_body_too(stubbed: Stubbed, code: str) -> None:
    """It does not count as missing: S3 answers both alike to a caller who may not list."""
    for read in (stubbed.store.get, stubbed.store.stream):
        stubbed.refuses("get_object", code, 403)
        with pytest.raises(StoreError, match="denied, or not there") as raised:
            read("key")
        assert raised.value.denied


@pytest.mark.parametrize("code", ["PreconditionFailed", "412"])
def test_a_lost_race_is_known_without_a_body_too(stubbed: Stubbed, code: str) -> None:
    """No other object is there by the time of the read-back."""
    stubbed.refuses("put_object", code, 412)
    stubbed.refuses("get_object", "NoSuchKey", 404)
    with pytest.raises(PreconditionFailed):
        stubbed.store.create("key", b"body")


def test_only_a_replacement_is_lost_because_nothing_is_there(stubbed: Stubbed) -> None:
    """A creation needs no object, so a 404 for it has another cause."""
    for _ in range(2):
        stubbed.refuses("put_object", "NoSuchKey", 404)
        stubbed.refuses("get_object", "NoSuchKey", 404)
    with pytest.raises(PreconditionFailed):
        stubbed.store.replace("key", b"body", etag='"1"')
    with pytest.raises(StoreError):
        stubbed.store.create("key", b"body")


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        *("AccessDenied", "403", "NoSuchBucket", "InvalidAccessKeyId", "SignatureDoesNotMatch"),
        *("ExpiredToken", "NotImplemented"),
    ],
)
def test_a_caller_who_is_refused_is_told_at_once(stubbed: Stubbed, code: str) -> None:
    """Whatever the status: a retry cannot help."""
    stubbed.refuses("delete_object", code, 501)
    with pytest.raises(StoreError, match=code) as raised:
        stubbed.store.delete("key")
    assert raised.value.denied
    assert stubbed.naps == []


@pytest.mark.parametrize(
    ("operation", "act", "right"),
    [
        ("put_object", lambda store: store.put("key", b""), "s3:PutObject .* on it"),
        ("delete_object", lambda store: store.delete("key"), "s3:DeleteObject on it"),
        ("delete_objects", lambda store: store.delete_all(["a", "b"]), "s3:DeleteObject on it"),
        ("list_objects_v2", lambda store: next(store.list("key")), "s3:ListBucket on its bucket, with this prefix"),
        ("list_multipart_uploads", lambda store: next(store.uploads("key")), "s3:ListBucketMultipartUploads on its b"),
        ("abort_multipart_upload", lambda store: store.abort(Upload("key", "id", None)), "s3:AbortMultipartUpload on"),
    ],
)
def test_a_denied_request_names_its_right(
    stubbed: Stubbed, operation: str, act: Callable[[S3ObjectStore], object], right: str
) -> None:
    """Other servers than AWS do not, and the right's name is not always the request's."""
    stubbed.refuses(operation, "AccessDenied", 403)
    with pytest.raises(StoreError, match=rf"s3://.*AccessDenied.*\. Allow {right}"):
        act(stubbed.store)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        *(("InternalError", 500), ("SlowDown", 503), ("TooManyRequests", 429), ("RequestTimeout", 400)),
        ("ConditionalRequestConflict", 409),
    ],
)
def test_what_may_work_a_moment_later_is_tried_three_times(stubbed: Stubbed, code: str, status: int) -> None:
    """With two pauses; then the caller decides."""
    stubbed.refuses("delete_object", code, status, times=3)
    with pytest.raises(StoreError, match=code) as raised:
        stubbed.store.delete("key")
    assert not raised.value.denied
    assert stubbed.naps == [0.05, 0.2]


@pytest.mark.parametrize("status", [400, 430, 499])
def test_a_request_that_is_wrong_is_not_tried_again(stubbed: Stubbed, status: int) -> None:
    """It would be as wrong a moment later."""
    stubbed.refuses("delete_object", "InvalidRequest", status)
    with pytest.raises(StoreError, match="InvalidRequest"):
        stubbed.store.delete("key")
    assert stubbed.naps == []


def test_a_server_that_is_not_there_is_tried_three_times(stubbed: Stubbed, monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer proves anything; a write raises as a read does."""

    def gone(**_: object) -> None:
        raise EndpointConnectionError(endpoint_url="http://127.0.0.1:9")

    monkeypatch.setattr(stubbed.store._client, "get_object", gone)
    monkeypatch.setattr(stubbed.store._client, "put_object", gone)
    with pytest.raises(StoreError, match="Could not connect"):
        stubbed.store.get("key")
    assert stubbed.naps == [0.05, 0.2]
    monkeypatch.setattr(stubbed.store, "get", lambda _, **__: None)
    with pytest.raises(StoreError, match="Could not connect"):
        stubbed.store.create("key", b"body")
    assert stubbed.naps == [0.05, 0.2] * 2


def test_only_an_upload_that_is_gone_needs_no_abort(stubbed: Stubbed) -> None:
    """Any other refusal leaves it, and its cost, where it is."""
    stubbed.refuses("abort_multipart_upload", "NoSuchUpload", 404)
    stubbed.store.abort(Upload("key", "id"))
    stubbed.refuses("abort_multipart_upload", "AccessDenied", 403)
    with pytest.raises(StoreError):
        stubbed.store.abort(Upload("key", "id"))


def test_nothing_is_sent_that_was_not_asked_for(stubbed: Stubbed) -> None:
    """No tag, which needs a permission of its own, and no start key."""
    stubbed.answers.add_response("list_objects_v2", {"IsTruncated": False}, {"Bucket": "bucket", "Prefix": "a"})
    assert list(stubbed.store.list("a")) == []
    sent = {"Bucket": "bucket", "Key": "key", "Body": ANY, "IfNoneMatch": "*"}
    stubbed.answers.add_response("put_object", {"ETag": '"1"'}, sent)
    assert stubbed.store.create("key", b"body") == '"1"'


# -- several objects by one request ------------------------------------------------------------------------------------


def batch(*errors: tuple[str, str]) -> dict[str, Any]:
    return {"Errors": [{"Key": key, "Code": code, "Message": "no"} for key, code in errors]}


def test_what_passes_for_one_object_of_a_batch_is_tried_again(stubbed: Stubbed) -> None:
    """The request has succeeded; the retry deletes the object with which the server was busy."""
    stubbed.answers.add_response("delete_objects", batch(("a", "InternalError")))
    stubbed.answers.add_response("delete_objects", batch())
    stubbed.store.delete_all(["a", "b"])
    assert stubbed.naps == [0.05]


@pytest.mark.parametrize(("code", "denied"), [("AccessDenied", True), ("InvalidRequest", False)])
def test_an_object_of_a_batch_that_stays_is_an_error(stubbed: Stubbed, code: str, denied: bool) -> None:  # noqa: FBT001 - a column of the table above
    """The error names it, although the request itself has succeeded."""
    stubbed.answers.add_response("delete_objects", batch(("b", code)))
    with pytest.raises(StoreError, match=f"{code}.*b: no") as raised:
        stubbed.store.delete_all(["a", "b"])
    assert raised.value.denied is denied
    assert stubbed.naps == []


@pytest.mark.parametrize(
    ("code", "status"), [("NotImplemented", 501), ("501", 501), ("MethodNotAllowed", 405), ("MalformedXML", 400)]
)
def test_a_store_without_batches_deletes_one_object_after_the_other(stubbed: Stubbed, code: str, status: int) -> None:
    """Some stores have only DeleteObject, and a key may hold characters that XML cannot."""
    stubbed.refuses("delete_objects", code, status)
    for key in ("a", "b"):
        stubbed.answers.add_response("delete_object", {}, {"Bucket": "bucket", "Key": key})
    stubbed.store.delete_all(["a", "b"])


def test_a_list_asks_for_as_many_keys_at_once_as_its_caller_wants(stubbed: Stubbed) -> None:
    """A short first page tells as much of a large folder as a long one; the next page begins behind it."""
    rows = [{"Key": key, "Size": 0, "LastModified": datetime(2026, 1, 1, tzinfo=UTC)} for key in ("a1", "a2")]
    answer = {"IsTruncated": True, "NextContinuationToken": "t", "Contents": rows}
    asked = {"Bucket": "bucket", "Prefix": "a", "MaxKeys": 2}
    stubbed.answers.add_response("list_objects_v2", answer, {**asked, "StartAfter": "a0"})
    stubbed.answers.add_response("list_objects_v2", {"IsTruncated": False}, {**asked, "ContinuationToken": "t"})
    assert [one.key for one in stubbed.store.list("a", start_after="a0", at_once=2)] == ["a1", "a2"]


def test_uploads_are_listed_by_names_that_any_xml_can_hold(stubbed: Stubbed) -> None:
    """The answer says whether they are encoded; the next page begins after the decoded one."""
    asked = {"Bucket": "bucket", "Prefix": "", "EncodingType": "url"}
    first = {"Uploads": [{"Key": "a%01+b", "UploadId": "1"}], "EncodingType": "url", "IsTruncated": True}
    more = {"NextKeyMarker": "a%01+b", "NextUploadIdMarker": "1"}
    stubbed.answers.add_response("list_multipart_uploads", {**first, **more}, asked)
    last = {"Uploads": [{"Key": "c%01+d", "UploadId": "2"}], "IsTruncated": False}
    begin = {"KeyMarker": "a\x01 b", "UploadIdMarker": "1"}
    stubbed.answers.add_response("list_multipart_uploads", last, {**asked, **begin})
    assert [upload.key for upload in stubbed.store.uploads("")] == ["a\x01 b", "c%01+d"]


@pytest.mark.parametrize("key", ["a\x01", "a\r", "a\ufffe"])
def test_a_key_that_no_xml_can_hold_is_deleted_by_itself(stubbed: Stubbed, key: str) -> None:
    """Otherwise one such name would end the clean-up of all others."""
    rest = {"Objects": [{"Key": "b"}, {"Key": "c"}], "Quiet": True}
    stubbed.answers.add_response("delete_objects", batch(), {"Bucket": "bucket", "Delete": rest})
    stubbed.answers.add_response("delete_object", {}, {"Bucket": "bucket", "Key": key})
    stubbed.store.delete_all([key, "b", "c"])


def test_a_refusal_after_a_try_without_an_answer_is_no_answer(stubbed: Stubbed) -> None:
    """The first request may still land: a caller that takes the refusal for a *no* would be wrong."""
    stubbed.refuses("put_object", "InternalError", 500)
    stubbed.refuses("get_object", "NoSuchKey", 404)
    stubbed.refuses("put_object", "AccessDenied", 403)
    stubbed.refuses("get_object", "NoSuchKey", 404)
    with pytest.raises(StoreError) as failed:
        stubbed.store.create("k", b"1")
    assert not failed.value.denied


@pytest.mark.parametrize(("code", "status"), [("AccessDenied", 403), ("NoSuchBucket", 404)])
def test_a_batch_that_is_refused_as_a_whole_is_an_error(stubbed: Stubbed, code: str, status: int) -> None:
    """Only a store without DeleteObjects gets single requests."""
    stubbed.refuses("delete_objects", code, status)
    with pytest.raises(StoreError, match=f"a and 1 more.*{code}"):
        stubbed.store.delete_all(["a", "b"])


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.get("\ud800"),
        lambda store: store.put("\ud800", b""),
        lambda store: store.create("\ud800", b""),
        lambda store: store.delete("\ud800"),
        lambda store: list(store.list("\ud800")),
        lambda store: list(store.uploads("\ud800")),
    ],
)
def test_a_key_that_is_no_text_in_utf8_is_an_error_of_the_store(
    monkeypatch: pytest.MonkeyPatch, call: Callable[[S3ObjectStore], object]
) -> None:
    """A foreign document may name one; its message can be printed. No request is sent."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "made-up")
    store = S3ObjectStore(s3_client(endpoint="http://127.0.0.1:9"), "bucket", sleep=lambda _: None)
    with pytest.raises(StoreError, match="no object has such a key") as told:
        call(store)
    str(told.value).encode()
