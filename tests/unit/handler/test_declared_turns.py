from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from handler.declared_turns import Turns, UndeclaredTurnError
from safewriter.coordination.configuration import Configuration
from safewriter.objects import Location

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Location.parse("s3://scripts/jobs")
MUTATION = {"lock.name": "ORDERS", "name": "Mutation", "predecessor": "Ingestion"}
EU, US = {"lock.name": "ORDERS", "name": "Eu"}, {"lock.name": "ORDERS", "name": "Us", "lease.seconds": "60"}
TURNS = Turns.parse({"mutation.py": MUTATION, "s3://elsewhere/regions.py": [EU, US]})


def of(script: str, asked: Mapping[str, str] | None = None) -> Configuration | None:
    return TURNS.of(Location.parse(script), FOLDER, asked)


def keys(given: Mapping[str, str]) -> dict[str, str]:
    return {f"job.coordinator.{key}": value for key, value in given.items()}


def test_a_script_has_the_turn_that_is_declared_for_it() -> None:
    """Whatever starts it, and although nobody asks: no event can leave the turn out."""
    assert of("s3://scripts/jobs/mutation.py") == Configuration.from_mapping(keys(MUTATION))
    assert of("s3a://scripts/jobs/mutation.py") == Configuration.from_mapping(keys(MUTATION))
    assert of("s3://scripts/jobs/other.py") is None
    assert of("s3://scripts/mutation.py") is None


@pytest.mark.parametrize("asked", [{"name": "Mutation"}, MUTATION, keys(MUTATION), {**MUTATION, "mode": "completed"}])
def test_an_event_may_say_what_is_declared(asked: dict[str, str]) -> None:
    """In part or as a whole, with the prefix or without."""
    assert of("s3://scripts/jobs/mutation.py", asked) == Configuration.from_mapping(keys(MUTATION))


def test_an_event_names_one_of_several_jobs_of_a_script() -> None:
    """Without a name nobody knows which one is meant."""
    assert of("s3://elsewhere/regions.py", {"name": "Us"}) == Configuration.from_mapping(keys(US))
    with pytest.raises(UndeclaredTurnError, match=r"is missing; .* is Eu on ORDERS or Us on ORDERS"):
        of("s3://elsewhere/regions.py")


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"name": "Ingestion"},
        {"name": "Mutation", "lock.name": "OTHER"},
        {"name": "Mutation", "predecessor": "Other"},
        {"name": "Mutation", "predecessor": ""},
        {"name": "Mutation", "first.run": "run"},
        {"name": "Mutation", "lease.seconds": "86400"},
        {"name": "Mutation", "backend": "s3://mine"},
        {"name": "Mutation", "colour": "red"},
    ],
)
def test_an_event_says_nothing_else(asked: dict[str, str]) -> None:
    """Not another job, lock, order or lease; and the error says what is declared."""
    with pytest.raises(
        UndeclaredTurnError, match=r"declared it for s3://scripts/jobs/mutation\.py: Mutation on ORDERS"
    ):
        of("s3://scripts/jobs/mutation.py", asked)


def test_a_script_without_a_declaration_gets_no_turn_by_an_event() -> None:
    """A job that does nothing cannot complete the turn of another one."""
    with pytest.raises(UndeclaredTurnError, match="no job"):
        of("s3://scripts/jobs/noop.py", {"lock.name": "ORDERS", "name": "Ingestion"})


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ([], "must be a JSON object of scripts"),
        ({"a.py": []}, "must be a JSON object of scripts"),
        ({"a.py": ["Mutation"]}, "must be a JSON object of scripts"),
        ({"a.py": {"name": "A"}}, r"a.py: job.coordinator.lock.name is missing"),
        ({"a.py": {**EU, "mode": "loose"}}, "'loose' is not one of completed, strict"),
        ({"a.py": {**EU, "backend": "s3://mine"}}, "SW_LOCKS"),
        ({"a.py": {**EU, "lease.seconds": "24"}}, "24 is not enough"),
        ({"a.py": [EU, EU]}, "two jobs have one name"),
        ({"s3://": EU}, "s3://"),
        ({f"{number}.py": EU for number in range(101)}, "more than 100 jobs"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(declared: Any, problem: str) -> None:
    """With the script and the key."""
    with pytest.raises(ValueError, match=problem):
        Turns.parse(declared)
