"""The keys `job.coordinator.…` configure a job's turns from arguments or Spark's settings; wrong ones are refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.coordination.configuration import Configuration, Edge, FirstRun, Mode, OnBlocked
from safewriter.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "job.coordinator."
NEEDED = {"lock.name": "lock", "name": "Mutation"}
AFTER = {**NEEDED, "predecessor": "Ingestion"}


def read(keys: Mapping[str, Any]) -> Configuration:
    return Configuration.from_mapping({PREFIX + key: value for key, value in keys.items()})


class Spark:
    """The settings of a session."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.conf = SimpleNamespace(getAll=settings)


def test_the_three_keys_of_the_article_are_enough() -> None:
    """All other keys have defaults."""
    assert read(AFTER) == Configuration(lock="lock", job="Mutation", predecessor="Ingestion")


def test_each_key_has_its_field() -> None:
    """Values are texts, as in Spark's settings and environment variables; other keys are ignored."""
    found = read(
        {
            **AFTER,
            "mode": "completed",
            "predecessor.edge": "lagged",
            "predecessor.lag": "24",
            "first.run": "run",
            "on.blocked": "skip",
            "max.wait.seconds": "0",
            "lease.seconds": "1",
            "poll.seconds": "0.001",
            "backend": "memory://here",
        }
    )
    assert found == Configuration(
        lock="lock",
        job="Mutation",
        predecessor="Ingestion",
        mode=Mode.COMPLETED,
        edge=Edge.LAGGED,
        lag=24,
        first_run=FirstRun.RUN,
        on_blocked=OnBlocked.SKIP,
        max_wait_s=0.0,
        lease_s=1.0,
        poll_s=0.001,
        backend="memory://here",
    )
    assert (
        Configuration.from_mapping({"spark.app.name": "x", PREFIX + "lock.name": "l", PREFIX + "name": "j"}).job == "j"
    )


def test_a_session_s_settings_may_bear_spark_s_prefix() -> None:
    """Spark drops keys of its command line without the prefix; a key without it wins."""
    session: Any = Spark(
        {f"spark.{PREFIX}lock.name": "lock", f"spark.{PREFIX}name": "theirs", PREFIX + "name": "ours", "other": "1"}
    )
    assert Configuration.from_spark(session) == Configuration(lock="lock", job="ours")


def test_a_wrong_key_of_a_session_is_refused() -> None:
    """Without its predecessor a job would run out of order."""
    session: Any = Spark(
        {f"spark.{PREFIX}lock.name": "l", f"spark.{PREFIX}name": "j", f"spark.{PREFIX}predecesor": "p"}
    )
    with pytest.raises(SettingError, match=r"job\.coordinator\.predecesor: is not known"):
        Configuration.from_spark(session)


@pytest.mark.parametrize(
    ("keys", "key", "problem"),
    [
        ({"name": "Mutation"}, "lock.name", "is missing"),
        ({"lock.name": "lock"}, "name", "is missing"),
        ({**NEEDED, "predecesor": "x"}, "predecesor", "is not known"),
        ({**NEEDED, "predecessor": "Mutation"}, "predecessor", "is the job itself"),
        ({**AFTER, "mode": "loose"}, "mode", "not one of completed, strict"),
        ({**AFTER, "predecessor.edge": "firm"}, "predecessor.edge", "not one of hard, soft, lagged"),
        ({**AFTER, "first.run": "now"}, "first.run", "not one of wait, run"),
        ({**AFTER, "on.blocked": "die"}, "on.blocked", "not one of wait, raise, skip"),
        ({**NEEDED, "predecessor.edge": "soft"}, "predecessor", "another key speaks of it"),
        ({**NEEDED, "first.run": "run"}, "predecessor", "another key speaks of it"),
        ({**AFTER, "mode": "strict", "predecessor.edge": "soft"}, "predecessor.edge", "hard edges only"),
        ({**AFTER, "predecessor.lag": "2"}, "predecessor.lag", "lagged only"),
        ({**AFTER, "predecessor.edge": "lagged", "predecessor.lag": "0"}, "predecessor.lag", "is not between 1 and"),
        (
            {**AFTER, "predecessor.edge": "lagged", "predecessor.lag": "9" * 30},
            "predecessor.lag",
            "is not between 1 and",
        ),
        ({**AFTER, "predecessor.edge": "lagged", "predecessor.lag": "1.5"}, "predecessor.lag", "not a number"),
        ({**NEEDED, "max.wait.seconds": "-1"}, "max.wait.seconds", "is not between 0 and"),
        ({**NEEDED, "lease.seconds": "0.9"}, "lease.seconds", "is not between 1 and"),
        ({**NEEDED, "lease.seconds": "nan"}, "lease.seconds", "is not between 1 and"),
        ({**NEEDED, "lease.seconds": "inf"}, "lease.seconds", "86400"),
        ({**NEEDED, "poll.seconds": "0"}, "poll.seconds", "is not between 0.001 and"),
        ({**NEEDED, "poll.seconds": "inf"}, "poll.seconds", "86400"),
        ({**NEEDED, "mode": "strict"}, "predecessor", "each job names the one before it"),
        ({**NEEDED, "poll.seconds": "soon"}, "poll.seconds", "not a number"),
        ({**NEEDED, "lock.name": "a/b"}, "lock.name", "is not a name"),
        ({**NEEDED, "name": ""}, "name", "is not a name"),
        ({**NEEDED, "name": "x" * 101}, "name", "is not a name"),
        ({**NEEDED, "predecessor": "."}, "predecessor", "is not a name"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_its_key(keys: dict[str, str], key: str, problem: str) -> None:
    """The constructor raises, so no invalid configuration exists."""
    with pytest.raises(SettingError) as refused:
        read(keys)
    assert str(refused.value).startswith(PREFIX + key + ": ")
    assert problem in str(refused.value)


def test_a_job_may_wait_without_end() -> None:
    """An infinite maximum wait is valid."""
    assert read({**NEEDED, "max.wait.seconds": "inf"}).max_wait_s == float("inf")


@pytest.mark.parametrize(
    ("more", "defers"),
    [
        ({"predecessor.edge": "soft"}, True),
        ({}, False),
        ({"predecessor.edge": "lagged"}, False),
        ({"mode": "strict"}, False),
    ],
)
def test_a_job_with_a_soft_edge_defers(more: dict[str, str], *, defers: bool) -> None:
    """With other edges, no predecessor goes first only because it waits."""
    assert read({**AFTER, **more}).defers is defers
