"""What every object store promises, in memory and on S3; and what the one on S3 does when an answer is not as hoped."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from safewriter.objects import ListedObject, ObjectStore, PreconditionFailed, StoreError, Upload
from safewriter.objects.s3 import PAUSES_S, S3ObjectStore
from scripts.emulator import EmbeddedS3, LoseReply, Match, Refuse, Reply, Request, Rule
from scripts.soal.recover.overlay import Overlay
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_s3 import S3Client

    from scripts.emulator.rules import Action

PRIVATE = "private"
TRIES = len(PAUSES_S) + 1

PUT = Match(operations={"PutObject"})
GET = Match(operations={"GetObject"})


class Bench:
    """One S3 for all tests of this file, with one client for those who are watched and one for who looks on."""

    def __init__(self, server: EmbeddedS3) -> None:
        self.server = server
        self.client = server.client()
        self.observer = server.observer()
        self.lake = ""

    def new_lake(self) -> None:
        """Begin a test: an empty bucket, no rule, no trace."""
        self.server.wire.clear_rules()
        self.lake = f"lake-{uuid.uuid4().hex}"
        self.observer.create_bucket(Bucket=self.lake)
        self.server.wire.clear_trace()

    def store(self, prefix: str = "", naps: list[float] | None = None) -> S3ObjectStore:
        return S3ObjectStore(self.client, self.lake, prefix, sleep=([] if naps is None else naps).append)

    def put(self, key: str, body: bytes = b"") -> None:
        """Put an object past the store, at its full key."""
        self.observer.put_object(Bucket=self.lake, Key=key, Body=body)

    def add(self, match: Match, action: Action, times: int | None = 1) -> None:
        """Let something go wrong."""
        self.server.wire.add(Rule(match, action, times=times))

    def operations(self) -> list[str]:
        return [exchange.operation for exchange in self.server.trace()]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """The S3, on a port of its own."""
    with EmbeddedS3(buckets=(PRIVATE,), unlistable=(PRIVATE,)) as server:
        yield Bench(server)


@pytest.fixture
def s3(bench: Bench) -> Bench:
    """The S3 at the beginning of a test."""
    bench.new_lake()
    return bench


@pytest.fixture
def naps() -> list[float]:
    """How long the store has slept between two tries."""
    return []


@pytest.fixture
def remote(s3: Bench, naps: list[float]) -> S3ObjectStore:
    """A store below a prefix, whose naps take no time."""
    return s3.store("some/table", naps)


@pytest.fixture(params=["memory", "overlay", "bucket", "prefix"])
def store(request: pytest.FixtureRequest, s3: Bench) -> ObjectStore:
    """Every implementation; on S3 as a whole bucket and as a prefix with neighbours that begin alike."""
    if request.param == "memory":
        return MemoryObjectStore()
    if request.param == "overlay":
        return Overlay(MemoryObjectStore(), lambda: datetime.now(UTC))
    if request.param == "bucket":
        return s3.store()
    s3.put("some/table2/a")
    s3.put("some/a")
    return s3.store("some/table")


@pytest.fixture
def begin_upload(store: ObjectStore, s3: Bench) -> Callable[[str], Upload]:
    """Begin a multipart upload, past the store on S3."""

    def begin(key: str) -> Upload:
        if isinstance(store, MemoryObjectStore):
            upload = Upload(key, f"id-{key}")
            store.begin_upload(upload)
            return upload
        if isinstance(store, Overlay):
            assert isinstance(store._below, MemoryObjectStore)
            store._below.begin_upload(Upload(key, f"id-{key}"))
            return Upload(key, f"id-{key}")
        full_key = store.uri(key).removeprefix(f"s3://{s3.lake}/")
        return Upload(key, s3.observer.create_multipart_upload(Bucket=s3.lake, Key=full_key)["UploadId"])

    return begin


def keys(listed: Iterator[ListedObject]) -> list[str]:
    return [row.key for row in listed]


# -- what every store promises -----------------------------------------------------------------------------------------


def test_what_was_put_is_got(store: ObjectStore) -> None:
    """Body and ETag come back, under the key that was asked for."""
    etag = store.put("a/b c=ü%20.json", b"\x00body\xff")

    found = store.get("a/b c=ü%20.json")

    assert found is not None
    assert (found.key, found.body, found.etag) == ("a/b c=ü%20.json", b"\x00body\xff", etag)


def test_a_missing_object_is_none(store: ObjectStore) -> None:
    """Absence is an answer, not an error."""
    assert store.get("none") is None


def test_an_empty_object_is_an_object(store: ObjectStore) -> None:
    """No bytes are not nothing."""
    store.put("empty", b"")

    found = store.get("empty")

    assert found is not None
    assert found.body == b""


def test_a_put_replaces_whatever_is_there(store: ObjectStore) -> None:
    """The unconditional write is the last word."""
    first = store.put("a", b"1")
    second = store.put("a", b"2")

    found = store.get("a")

    assert found is not None
    assert found.body == b"2"
    assert found.etag == second != first


def test_a_creation_wins_once(store: ObjectStore) -> None:
    """The second one learns that it has lost, and the first one's object stays."""
    etag = store.create("a", b"1")

    with pytest.raises(PreconditionFailed):
        store.create("a", b"2")

    found = store.get("a")
    assert found is not None
    assert (found.body, found.etag) == (b"1", etag)


def test_after_a_deletion_there_may_be_a_creation(store: ObjectStore) -> None:
    """What counts is what is there."""
    store.create("a", b"1")
    store.delete("a")

    store.create("a", b"2")


def test_of_many_creators_one_wins(store: ObjectStore) -> None:
    """Whatever the order in which they arrive."""

    def create(number: int) -> int | None:
        try:
            store.create("contended", b"%d" % number)
        except PreconditionFailed:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        won = [number for number in pool.map(create, range(16)) if number is not None]

    found = store.get("contended")
    assert found is not None
    assert [b"%d" % number for number in won] == [found.body]


def test_a_replacement_needs_the_etag_of_what_is_there(store: ObjectStore) -> None:
    """The second replacement of one reading loses, and changes nothing."""
    first = store.create("a", b"1")
    second = store.replace("a", b"2", etag=first)

    with pytest.raises(PreconditionFailed):
        store.replace("a", b"3", etag=first)

    found = store.get("a")
    assert found is not None
    assert (found.body, found.etag) == (b"2", second)


def test_a_tag_belongs_to_one_writing_of_an_object(s3: Bench) -> None:
    """Who writes the object anew without it takes it away."""

    def tags() -> list[tuple[str, str]]:
        found = s3.observer.get_object_tagging(Bucket=s3.lake, Key="a")["TagSet"]
        return [(tag["Key"], tag["Value"]) for tag in found]

    store = s3.store()
    memory = MemoryObjectStore()
    first = store.create("a", b"1", tag="soal=finished")
    assert memory.create("a", b"1", tag="soal=finished") == first
    assert (tags(), memory.tags["a"]) == ([("soal", "finished")], "soal=finished")
    second = store.replace("a", b"2", etag=first)
    assert memory.replace("a", b"2", etag=first) == second
    assert (tags(), memory.tags["a"]) == ([], "")
    store.replace("a", b"3", etag=second, tag="soal=finished")
    memory.replace("a", b"3", etag=second, tag="soal=finished")
    assert (tags(), memory.tags["a"]) == ([("soal", "finished")], "soal=finished")
    assert store.put("a", b"4") == memory.put("a", b"4")
    assert (tags(), memory.tags["a"]) == ([], "")


def test_a_tag_that_may_not_be_set_is_refused_at_once(s3: Bench, naps: list[float]) -> None:
    """Like any permission that is missing; so is one that a store does not know (501): nothing was written."""
    for status in (403, 501):
        s3.add(Match(operations={"PutObject"}), Refuse(status))
        with pytest.raises(StoreError) as refused:
            s3.store(naps=naps).create("a", b"1", tag="soal=finished")
        assert refused.value.denied
    assert naps == []
    assert s3.store().get("a") is None


def test_a_replacement_of_nothing_has_lost(store: ObjectStore) -> None:
    """An object that was deleted meanwhile is no longer the one that was read."""
    etag = store.create("a", b"1")
    store.delete("a")

    with pytest.raises(PreconditionFailed):
        store.replace("a", b"2", etag=etag)

    assert store.get("a") is None


def test_of_many_replacements_one_wins(store: ObjectStore) -> None:
    """This is the compare-and-swap that every document rests on."""
    etag = store.create("a", b"start")

    def replace(number: int) -> int | None:
        try:
            store.replace("a", b"%d" % number, etag=etag)
        except PreconditionFailed:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        won = [number for number in pool.map(replace, range(16)) if number is not None]

    found = store.get("a")
    assert found is not None
    assert [b"%d" % number for number in won] == [found.body]


def test_a_deletion_of_nothing_is_no_error(store: ObjectStore) -> None:
    """Deleting twice is deleting once."""
    store.put("a", b"1")
    store.delete("a")
    store.delete("a")

    assert store.get("a") is None


def test_a_listing_is_in_order_and_below_its_prefix(store: ObjectStore) -> None:
    """Keys are relative to the store, neighbours that begin alike do not show, sizes are in bytes."""
    for key in ("b/2", "a", "b/10", "b", "c"):
        store.put(key, key.encode())

    assert keys(store.list("")) == ["a", "b", "b/10", "b/2", "c"]
    assert keys(store.list("b/")) == ["b/10", "b/2"]
    assert keys(store.list("none/")) == []
    assert [row.size for row in store.list("b/")] == [4, 3]


def test_a_listing_may_begin_after_a_key(store: ObjectStore) -> None:
    """The key itself is left out; it need not exist."""
    for number in range(5):
        store.put(f"log/{number:03}.json", b"")

    assert keys(store.list("log/", start_after="log/001.json")) == ["log/002.json", "log/003.json", "log/004.json"]
    assert keys(store.list("log/", start_after="log/001")) == [f"log/00{number}.json" for number in (1, 2, 3, 4)]
    assert keys(store.list("log/", start_after="log/9")) == []
    assert len(keys(store.list("log/", start_after="log/"))) == 5


def test_the_stores_own_clock_dates_everything(store: ObjectStore) -> None:
    """Object, listing and answer, all with a time zone."""
    store.put("a", b"1")

    found = store.get("a")
    (listed,) = store.list("a")

    assert found is not None
    now = datetime.now(UTC)
    for moment in (found.last_modified, found.server_date, listed.last_modified):
        assert abs(now - moment) < timedelta(minutes=5)
    assert found.server_date - found.last_modified > timedelta(seconds=-2)  # S3 gives whole seconds


def test_unfinished_uploads_are_found_and_aborted(store: ObjectStore, begin_upload: Callable[[str], Upload]) -> None:
    """Below the prefix, with the time of their beginning; an upload that is gone already is no error."""
    first, second, other = begin_upload("data/a"), begin_upload("data/b"), begin_upload("other")

    listed = sorted(store.uploads("data/"), key=lambda upload: upload.key)
    assert listed == [first, second]
    for upload in listed:
        assert upload.initiated is not None
        assert abs(datetime.now(UTC) - upload.initiated) < timedelta(minutes=5)
    store.abort(first)
    store.abort(first)

    assert list(store.uploads("data/")) == [second]
    assert {upload.key for upload in store.uploads("")} == {second.key, other.key}
    assert store.get("data/a") is None


def test_a_uri_names_bucket_and_key(store: ObjectStore) -> None:
    """For messages and documents."""
    assert store.uri("a/b").startswith("s3://")
    assert store.uri("a/b").endswith("a/b")


# -- more than one page ------------------------------------------------------------------------------------------------


def test_a_listing_of_many_pages_is_whole(s3: Bench, remote: S3ObjectStore) -> None:
    """More keys than S3 returns at once, from the beginning and from the middle."""
    expected = [f"k/{number:05}" for number in range(1005)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(s3.put, (f"some/table/{key}" for key in expected)))

    assert keys(remote.list("k/")) == expected
    assert keys(remote.list("", start_after="k/00002")) == expected[3:]
    assert s3.operations().count("ListObjectsV2") == 4


def test_uploads_of_many_pages_are_whole() -> None:
    """The emulated S3 gives all uploads at once, so here the answers are written by hand."""
    client = boto3.client("s3", endpoint_url="http://127.0.0.1:9", config=Config(retries={"total_max_attempts": 1}))
    asked = {"Bucket": "lake", "Prefix": "t/data/"}
    with Stubber(client) as stubber:
        stubber.add_response(
            "list_multipart_uploads",
            {
                "Uploads": [{"Key": "t/data/a", "UploadId": "1"}],
                "IsTruncated": True,
                "NextKeyMarker": "t/data/a",
                "NextUploadIdMarker": "1",
            },
            asked,
        )
        stubber.add_response(
            "list_multipart_uploads",
            {"Uploads": [{"Key": "t/data/b", "UploadId": "2"}], "IsTruncated": False},
            {**asked, "KeyMarker": "t/data/a", "UploadIdMarker": "1"},
        )

        found = list(S3ObjectStore(client, "lake", "t").uploads("data/"))

    assert found == [Upload("data/a", "1"), Upload("data/b", "2")]


# -- a caller that may not list ----------------------------------------------------------------------------------------


def test_without_the_right_to_list_a_missing_object_is_still_none(s3: Bench) -> None:
    """S3 says 403 then, and the first claim of a write must not fail on it."""
    store = S3ObjectStore(s3.client, PRIVATE)

    assert store.get("none") is None
    store.create("a", b"1")
    assert store.get("a") is not None
    assert [exchange.status for exchange in s3.server.trace()] == [403, 200, 200]


def test_without_the_right_to_list_a_listing_is_denied(s3: Bench) -> None:
    """An empty answer would be taken for an empty log."""
    with pytest.raises(StoreError, match="AccessDenied") as caught:
        keys(S3ObjectStore(s3.client, PRIVATE).list(""))

    assert caught.value.denied


def test_a_bucket_that_is_not_there_is_denied(s3: Bench) -> None:
    """Trying again will not help, and the error tells."""
    store = S3ObjectStore(s3.client, "no-such-bucket")

    writes: tuple[Callable[[], object], ...] = (
        lambda: store.put("a", b""),
        lambda: store.create("a", b""),
        lambda: store.replace("a", b"", etag="x"),
    )
    for write in writes:
        with pytest.raises(StoreError, match="NoSuchBucket") as caught:
            write()
        assert caught.value.denied


def test_a_write_that_is_not_allowed_is_denied_at_once(s3: Bench, remote: S3ObjectStore, naps: list[float]) -> None:
    """It is not repeated, and not taken for a lost race."""
    s3.add(PUT, Refuse(403), times=None)

    writes: tuple[Callable[[], object], ...] = (lambda: remote.put("a", b""), lambda: remote.create("a", b""))
    for write in writes:
        with pytest.raises(StoreError) as caught:
            write()
        assert caught.value.denied
    assert naps == []


# -- answers that do not come, or come wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", [500, 503, 409, None, 412])
def test_a_creation_whose_answer_was_lost_is_known_again(
    s3: Bench, remote: S3ObjectStore, naps: list[float], status: int | None
) -> None:
    """Its own bytes are read back: it has won, although somebody (a proxy, an SDK's retry) says otherwise."""
    s3.add(PUT, LoseReply(status))

    etag = remote.create("a", b"mine")

    found = remote.get("a")
    assert found is not None
    assert (found.body, found.etag) == (b"mine", etag)
    assert s3.operations().count("PutObject") == 1
    assert naps == []


@pytest.mark.parametrize("status", [500, 503, 409, None, 412])
def test_a_replacement_whose_answer_was_lost_is_known_again(
    s3: Bench, remote: S3ObjectStore, status: int | None
) -> None:
    """Else the owner of a document would believe that somebody has taken it over."""
    before = remote.create("a", b"1")
    s3.add(PUT, LoseReply(status))

    etag = remote.replace("a", b"mine", etag=before)

    found = remote.get("a")
    assert found is not None
    assert (found.body, found.etag) == (b"mine", etag)


def test_a_creation_that_was_lost_twice_in_two_ways_is_not_lost(s3: Bench, remote: S3ObjectStore) -> None:
    """Neither the answer nor the first reading back comes through; the second reading does."""
    s3.add(PUT, LoseReply(503))
    s3.add(GET, Refuse(503))

    remote.create("a", b"mine")

    assert s3.operations().count("PutObject") == 1


def test_a_creation_that_nobody_can_tell_of_is_neither_won_nor_lost(s3: Bench, remote: S3ObjectStore) -> None:
    """Without a way to read back the end is unknown, and says so."""
    s3.add(PUT, LoseReply(503))
    s3.add(GET, Refuse(503), times=None)

    with pytest.raises(StoreError) as caught:
        remote.create("a", b"mine")

    assert not caught.value.denied
    assert s3.server.keys(s3.lake) == ("some/table/a",)


@pytest.mark.parametrize("status", [409, 500, 503])
def test_a_race_that_s3_did_not_decide_is_run_again(
    s3: Bench, remote: S3ObjectStore, naps: list[float], status: int
) -> None:
    """409 is not a defeat, nor is a server's error: the same request is sent once more."""
    s3.add(PUT, Refuse(status))
    etag = remote.create("a", b"1")
    s3.add(PUT, Refuse(status), times=TRIES - 1)

    remote.replace("a", b"2", etag=etag)

    found = remote.get("a")
    assert found is not None
    assert found.body == b"2"
    assert naps == [PAUSES_S[0], *PAUSES_S]


def test_a_race_that_was_run_again_can_be_lost(s3: Bench, remote: S3ObjectStore) -> None:
    """Somebody else was faster in between, and that is the answer."""

    def taken(request: Request) -> Reply:
        s3.put("some/table/a", b"theirs")
        return Reply.error(409, "a race")

    s3.add(PUT, taken)

    with pytest.raises(PreconditionFailed):
        remote.create("a", b"mine")

    found = remote.get("a")
    assert found is not None
    assert found.body == b"theirs"


@pytest.mark.parametrize("status", [409, 500, 503])
@pytest.mark.parametrize("call", ["get", "put", "create", "replace", "delete", "list", "uploads"])
def test_tries_are_bounded(s3: Bench, remote: S3ObjectStore, naps: list[float], call: str, status: int) -> None:
    """A server that always fails ends in an error that names request and key, and is worth another try later."""
    etag = remote.create("a", b"1")
    s3.server.wire.clear_trace()
    conditional = call in ("create", "replace")  # what they read back is answered
    s3.add(PUT if conditional else Match(), Refuse(status), times=None)
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: remote.get("a"),
        "put": lambda: remote.put("a", b"2"),
        "create": lambda: remote.create("b", b"2"),
        "replace": lambda: remote.replace("a", b"2", etag=etag),
        "delete": lambda: remote.delete("a"),
        "list": lambda: keys(remote.list("a")),
        "uploads": lambda: list(remote.uploads("a")),
    }

    with pytest.raises(StoreError, match=f"s3://{s3.lake}/some/table/") as caught:
        calls[call]()

    assert not caught.value.denied
    assert naps == list(PAUSES_S)
    refused = [exchange for exchange in s3.server.trace() if exchange.status == status]
    assert len(refused) == TRIES


@pytest.mark.parametrize("call", ["get", "put", "delete", "list"])
def test_one_error_of_the_server_is_no_error(s3: Bench, remote: S3ObjectStore, call: str) -> None:
    """Reads and unconditional writes may be repeated without a second thought."""
    remote.put("a", b"1")
    s3.add(Match(), Refuse(503))
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: remote.get("a"),
        "put": lambda: remote.put("a", b"2"),
        "delete": lambda: remote.delete("a"),
        "list": lambda: keys(remote.list("a")),
    }

    calls[call]()


def test_a_server_that_does_not_answer_is_an_error_like_any_other(naps: list[float]) -> None:
    """Nobody listens there: unknown, not denied, and worth another try later."""
    client: S3Client = boto3.client(
        "s3", endpoint_url="http://127.0.0.1:9", config=Config(retries={"total_max_attempts": 1})
    )
    store = S3ObjectStore(client, "lake", sleep=naps.append)

    calls: tuple[Callable[[], object], ...] = (
        lambda: store.put("a", b""),
        lambda: store.create("a", b""),
        lambda: store.get("a"),
    )
    for call in calls:
        with pytest.raises(StoreError) as caught:
            call()
        assert not caught.value.denied


def test_the_servers_date_is_the_servers(s3: Bench, remote: S3ObjectStore) -> None:
    """A lease is judged by S3's clock, not by this machine's."""
    remote.put("a", b"1")
    s3.server.wire.clock_ahead_s = 3600.0
    try:
        found = remote.get("a")
    finally:
        s3.server.wire.clock_ahead_s = 0.0

    assert found is not None
    assert found.server_date - found.last_modified > timedelta(minutes=59)
