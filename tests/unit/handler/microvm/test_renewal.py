"""What a restored copy gets anew: ids, clients, the clock."""

from __future__ import annotations

import random
import time
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from handler.microvm.renewal import ClockError, renew_process, set_clock
from safewriter import entropy
from safewriter.entropy import unique_id
from safewriter.objects import s3

if TYPE_CHECKING:
    from collections.abc import Callable


def dated(seconds: float) -> dict[str, Any]:
    headers = {"date": formatdate(time.time() + seconds, usegmt=True)}
    return {"ResponseMetadata": {"HTTPHeaders": headers}, "Error": {"Code": "403"}}


def test_copies_with_ids_of_their_own_share_no_random_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their kernels, clocks and generators are the same."""
    monkeypatch.setattr("os.urandom", bytes)
    monkeypatch.setattr("time.time_ns", lambda: 0)
    pool, state = vars(entropy._POOL).copy(), random.getstate()
    drawn = []
    for microvm_id in ("mvm-1", "mvm-2"):
        vars(entropy._POOL).update(pool)
        random.setstate(state)
        renew_process(microvm_id)
        drawn.append((unique_id(), random.random()))  # noqa: S311 - a job's own generator
    assert drawn[0][0] != drawn[1][0]
    assert drawn[0][1] != drawn[1][1]


def test_no_connection_of_before_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A restored socket has no other end, and its credentials may be those of the build."""
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    before = s3.shared_client()
    assert s3.shared_client() is before
    renew_process("mvm-1")
    assert s3.shared_client() is not before


@pytest.mark.parametrize("wrong_by_s", [3600, -3600])
def test_a_wrong_clock_is_set_to_that_of_s3(wrong_by_s: float) -> None:
    """Also by the answer to a request that S3 has refused for its date."""
    set_to: list[float] = []
    set_clock(lambda: dated(wrong_by_s), set_to=set_to.append)

    def refused() -> None:
        raise ClientError(dated(wrong_by_s), "HeadBucket")  # type: ignore[arg-type]

    set_clock(refused, set_to=set_to.append)
    assert [round(abs(each - time.time() - wrong_by_s)) < 60 for each in set_to] == [True, True]


def test_a_right_clock_is_left_alone() -> None:
    """S3 names whole seconds, and some stores name none; without an answer nothing is known."""

    def unreachable() -> None:
        raise ConnectTimeoutError(endpoint_url="http://s3")

    undated: dict[str, Any] = {"ResponseMetadata": {"HTTPHeaders": {}}}
    answers: list[Callable[[], Any]] = [lambda: dated(0), lambda: dated(-2), lambda: undated, unreachable]
    for ask in answers:
        set_clock(ask, set_to=pytest.fail)  # type: ignore[arg-type]


def test_a_clock_that_may_not_be_set_is_an_error() -> None:
    """No lease and no deadline would be right."""

    def forbidden(_: float) -> None:
        raise PermissionError("not permitted")

    with pytest.raises(ClockError, match="capabilities"):
        set_clock(lambda: dated(600), set_to=forbidden)
