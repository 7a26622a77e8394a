"""The log store's conditional PUT creates an object once: lost answers, retries, refusals, interrupts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

import pytest

from soal.testing.s3.rules import Kill, Refuse
from tests.logstore.conftest import AGAIN
from tests.support.network_faults import LoseReply

if TYPE_CHECKING:
    from tests.logstore.conftest import Bucket

PUT: Final = "PutObject If-None-Match: *"
LANDED: Final = {"outcome": "LANDED"}
TAKEN: Final = {"outcome": "TAKEN"}
TRIES: Final = 5


def test_an_object_is_created_by_one_conditional_request(lake: Bucket) -> None:
    """No request precedes or follows it."""
    assert lake.ask("put", "one", body="ours") == LANDED
    assert (lake.requests(), lake.get("one")) == ([PUT], "ours")


def test_what_is_there_stays(lake: Bucket) -> None:
    """The put does not overwrite another writer's object, and returns TAKEN."""
    lake.put("one", "theirs")
    assert lake.ask("put", "one", body="ours") == TAKEN
    assert lake.get("one") == "theirs"


def test_equal_bytes_are_ours(lake: Bucket) -> None:
    """A layer below may have retried a request whose response was lost, and found its own object."""
    lake.put("one", "ours")
    assert lake.ask("put", "one", body="ours") == LANDED


@pytest.mark.parametrize("status", [500, 503, None])
def test_a_lost_answer_is_no_failure(lake: Bucket, status: int | None) -> None:
    """The put reads the object back instead of sending it again."""
    lake.breaks("PutObject", LoseReply(status))
    assert lake.ask("put", "one", body="ours") == LANDED
    assert lake.requests().count(PUT) == 1


@pytest.mark.parametrize("status", [409, 500, 503])
def test_what_was_not_applied_is_sent_again(lake: Bucket, status: int) -> None:
    """A conflict of two conditional requests, or an error of the server."""
    lake.breaks("PutObject", Refuse(status))
    assert lake.ask("put", "one", body="ours") == LANDED
    assert (lake.requests().count(PUT), lake.get("one")) == (2, "ours")


def test_a_connection_that_breaks_before_it_was_applied_is_made_again(lake: Bucket) -> None:
    """A broken connection has no status."""
    lake.breaks("PutObject", Kill("before", end=lambda: None))
    assert lake.ask("put", "one", body="ours") == LANDED
    assert (lake.requests().count(PUT), lake.get("one")) == (2, "ours")


DENIED: Final = "io.soal.logstore.ObjectStore$Denied"


def test_a_refusal_of_the_only_request_is_a_witness(lake: Bucket) -> None:
    """Nothing can land, and the error names the missing right."""
    lake.breaks("PutObject", Refuse(403), times=None)
    error = lake.ask("put", "one", body="ours")["error"][0]
    assert error.startswith(DENIED)
    assert "allow s3:PutObject" in error


def test_a_refusal_behind_a_try_without_an_answer_proves_nothing(lake: Bucket) -> None:
    """The first try may still be in flight."""
    lake.breaks("PutObject", Kill("before", end=lambda: None))
    lake.breaks("PutObject", Refuse(403), times=None)
    error = lake.ask("put", "one", body="ours")["error"]
    assert lake.requests().count(PUT) == 2
    assert not error[0].startswith(DENIED)


def test_a_refusal_of_what_may_be_sent_in_parts_proves_nothing(lake: Bucket) -> None:
    """S3A does not count its retries of a multipart upload's completion."""
    lake.breaks("PutObject", Refuse(403), times=None)
    assert not lake.ask("put", "one", body="o" * (5 << 20))["error"][0].startswith(DENIED)


@pytest.mark.parametrize("bucket", AGAIN)
def test_a_refusal_behind_a_try_of_the_layers_below_proves_nothing(lake: Bucket, bucket: str) -> None:
    """They do not report a retried request, but count it."""
    again = dataclasses.replace(lake, bucket=bucket)
    again.breaks("PutObject", Kill("before", end=lambda: None))
    again.breaks("PutObject", Refuse(403), times=None)
    error = again.ask("put", "one", body="ours")["error"]
    assert again.requests().count(PUT) == 2
    assert not error[0].startswith(DENIED)


def test_a_refusal_in_front_of_an_object_proves_nothing(lake: Bucket) -> None:
    """Another writer's object is there, which Delta has to read."""
    lake.put("one", "theirs")
    lake.breaks("PutObject", Refuse(403), times=None)
    assert lake.ask("put", "one", body="ours") == TAKEN


@pytest.mark.parametrize("status", [400, 403, 412])
def test_what_will_not_get_better_is_sent_once(lake: Bucket, status: int) -> None:
    """A missing right; or a failed condition, although no object is there any more."""
    lake.breaks("PutObject", Refuse(status), times=None)
    assert "error" in lake.ask("put", "one", body="ours")
    assert (lake.requests().count(PUT), lake.get("one")) == (1, None)


def test_a_store_that_stays_broken_is_given_up(lake: Bucket) -> None:
    """The tries have a bound and growing pauses; the last error names the earlier ones."""
    lake.breaks("PutObject", Refuse(503), times=None)
    answer = lake.ask("put", "one", body="ours")
    assert (lake.requests().count(PUT), answer["pauses"]) == (TRIES, [100, 200, 300, 400])
    assert any(line.startswith("suppressed: ") for line in answer["error"])


def test_a_slot_that_cannot_be_read_back_is_in_doubt(lake: Bucket) -> None:
    """The put does not guess that the object is ours; its error names that of the request, too."""
    lake.breaks("PutObject", LoseReply(500))
    lake.breaks("GetObject", Refuse(403), times=None)
    error = lake.ask("put", "one", body="ours")["error"]
    assert "AccessDenied" in error[0]
    assert any(line.startswith("suppressed: ") and "500" in line for line in error)


def test_an_interrupt_ends_the_tries(lake: Bucket) -> None:
    """A cancelled job does not retry its commit."""
    lake.breaks("PutObject", Refuse(503), times=None)
    assert "error" in lake.ask("put", "one", body="ours", interrupted=True)
    assert lake.requests().count(PUT) <= 1


def test_an_interrupt_in_the_pause_ends_the_tries(lake: Bucket) -> None:
    """Also after a response; the thread stays interrupted."""
    lake.breaks("PutObject", Refuse(503), times=None)
    answer = lake.ask("put", "one", body="ours", interruptedInPause=True)
    assert answer["interrupted"]
    assert answer["error"][0] == "java.io.InterruptedIOException: interrupted between two tries of a conditional PUT"
    assert lake.requests().count(PUT) == 1


def test_what_is_missing_is_nothing(lake: Bucket) -> None:
    """A read returns the whole object, or reports that there is none."""
    lake.put("one", "ours")
    assert lake.ask("read", "one") == {"body": "ours"}
    assert lake.ask("read", "none") == {"missing": True}
