"""The turns that the owner declares, and the keys that an event may set."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from handler.input_errors import InputError
from handler.request.turns import DeclaredTurn, declared_turns, turn_of
from handler.settings import read_settings
from safewriter.coordination import Configuration
from safewriter.objects import Location

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = Location("scripts", "mutation.py")
MUTATION = {"script": "s3://scripts/mutation.py", "predecessor": "Ingestion", "lease.seconds": "60"}
LOCK, JOB = "job.coordinator.lock.name", "job.coordinator.name"


def declared(locks: dict[str, Any]) -> tuple[DeclaredTurn, ...]:
    found = declared_turns(json.dumps(locks))
    assert isinstance(found, tuple)
    return found


ONE = declared({"table": {"Mutation": MUTATION}})
TWO = (*ONE, *declared({"other": {"Copy": {"script": "s3://scripts/mutation.py"}}}))


@pytest.mark.parametrize(
    "fields",
    [
        None,
        {},
        {"lock.name": "table"},
        {JOB: "Mutation", "lock.name": "table"},
        {"predecessor": "Ingestion", "lease.seconds": "60.0", "mode": "completed", "predecessor.lag": "1"},
    ],
)
def test_an_event_may_say_what_is_declared(fields: dict[str, str] | None) -> None:
    """With or without the prefix, with other digits, or without keys: the turn is the owner's."""
    expected = Configuration(lock="table", job="Mutation", predecessor="Ingestion", lease_s=60)
    assert turn_of(SCRIPT, ONE, fields, "coordination") == expected


@pytest.mark.parametrize(
    ("turns", "fields", "field", "problem"),
    [
        ((), {"lock.name": "table", "name": "Mutation"}, "", "has none"),
        ((), {}, "", "has none"),
        (ONE, {"lock.name": "none"}, LOCK, "is not table"),
        (ONE, {"name": "Ingestion"}, JOB, "is not Mutation"),
        (TWO, {"lock.name": "table", "name": "Copy"}, JOB, "is not Mutation"),
        (TWO, None, "", "Mutation at table and Copy at other"),
        (ONE, {"name": "Mutation", JOB: "Mutation"}, JOB, "keep one of the two"),
        (ONE, {"backend": "s3://mine"}, "job.coordinator.backend", "SW_LOCKS"),
        (ONE, {"predecessor": "TTL"}, "job.coordinator.predecessor", "is not 'Ingestion'"),
        (ONE, {"predecessor": "Mutation"}, "job.coordinator.predecessor", "is the job itself"),
        (ONE, {"predecessor.edge": "soft"}, "job.coordinator.predecessor.edge", "is not the default"),
        (ONE, {"predecessor.lag": "2"}, "job.coordinator.predecessor.lag", "lagged only"),
        (ONE, {"mode": "strict"}, "job.coordinator.mode", "is not the default"),
        (ONE, {"mode": "loose"}, "job.coordinator.mode", "is not one of"),
        (ONE, {"first.run": "run"}, "job.coordinator.first.run", "is not the default"),
        (ONE, {"lease.seconds": "86400"}, "job.coordinator.lease.seconds", "is not '60'"),
        (ONE, {"poll.seconds": "0.001"}, "job.coordinator.poll.seconds", "is not the default"),
        (ONE, {"max.wait.seconds": "0"}, "job.coordinator.max.wait.seconds", "is not the default"),
        (ONE, {"on.blocked": "skip"}, "job.coordinator.on.blocked", "is not the default"),
        (ONE, {"colour": "red"}, "job.coordinator.colour", "is not known"),
    ],
)
def test_an_event_says_nothing_beyond_the_declaration(
    turns: tuple[DeclaredTurn, ...], fields: dict[str, str] | None, field: str, problem: str
) -> None:
    """This holds for every key; the error names it and the declared value."""
    with pytest.raises(InputError) as raised:
        turn_of(SCRIPT, turns, fields, "coordination")
    assert raised.value.field == f"coordination.{field}".rstrip(".")
    assert problem in raised.value.problem


def test_a_script_of_several_turns_takes_the_one_that_is_named() -> None:
    """The event names it by lock or by job."""
    for fields in ({"lock.name": "other"}, {"name": "Copy"}):
        turn = turn_of(SCRIPT, TWO, fields, "coordination")
        assert turn is not None
        assert (turn.lock, turn.job) == ("other", "Copy")


def test_a_script_without_a_turn_runs_as_ever() -> None:
    """The owner has declared nothing for it."""
    assert turn_of(SCRIPT, (), None, "coordination") is None


@pytest.mark.parametrize(
    ("turns", "problem"),
    [
        ("[]", "must be a JSON object of locks"),
        ("{", "must be a JSON object of locks"),
        ({"t": {"A": {"script": 1}}}, "must be a JSON object of locks"),
        ({"t": {"A": {}}}, "t.A has no script"),
        ({"t": {"A": {**MUTATION, "name": "B"}}}, "t.A sets job.coordinator.name"),
        ({"t": {"A": {**MUTATION, "backend": "s3://b"}}}, "t.A sets job.coordinator.backend"),
        ({"t": {"A": {**MUTATION, "predecessor": "A"}}}, "t.A: job.coordinator.predecessor"),
        ({"t": {"A": {**MUTATION, "colour": "red"}}}, "t.A: job.coordinator.colour is not known"),
        ({"t": {"A" * 101: MUTATION}}, "100 at most"),
        ({"t" * 101: {"A": MUTATION}}, "100 at most"),
        ({"t": {"A": {**MUTATION, "lease.seconds": "24"}}}, "is not between 25 and 900"),
        ({"t": {"A": {**MUTATION, "lease.seconds": "901"}}}, "is not between 25 and 900"),
        ({"t": {f"A{number}": MUTATION for number in range(51)}}, "t has 51 jobs"),
        ({"t": {"A": {"script": "mutation.py"}}}, "which is not set"),
        ({"t": {"A": {"script": "s3://scripts/mutation"}}}, "does not name a Python script"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(turns: object, problem: str, tmp_path: Path) -> None:
    """The error names the variable, the lock and the job."""
    (tmp_path / "jars").mkdir()
    text = turns if isinstance(turns, str) else json.dumps(turns)
    with pytest.raises(InputError) as raised:
        read_settings({"SW_CHECKPOINT_BUCKET": "bucket", "SOAL_HOME": str(tmp_path), "SOAL_TURNS": text})
    assert raised.value.field == "SOAL_TURNS"
    assert problem in raised.value.problem


def test_a_key_lies_below_the_script_bucket(tmp_path: Path) -> None:
    """As for SPARK_SCRIPT: a stack does not know its bucket's name beforehand."""
    (tmp_path / "jars").mkdir()
    variables = {"SW_CHECKPOINT_BUCKET": "bucket", "SOAL_HOME": str(tmp_path), "SCRIPT_BUCKET": "scripts/jobs"}
    settings = read_settings({**variables, "SOAL_TURNS": json.dumps({"t": {"A": {"script": "a.py"}}})})
    assert len(settings.turns_of(Location("scripts", "jobs/a.py"))) == 1
    assert settings.turns_of(Location("scripts", "a.py")) == ()
