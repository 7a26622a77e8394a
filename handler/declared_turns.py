"""The turns of jobs: the function's owner declares them for scripts, and an event can only name one of its script's.

Whoever may start a script could otherwise act for any job on any lock: complete another job's turn, go before its
predecessor, or hold the lock for a day.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations of Turns
from dataclasses import dataclass, field
from typing import Any, Final

from safewriter.coordination.configuration import PREFIX, Configuration
from safewriter.errors import SettingError
from safewriter.objects import Location

__all__ = ["Turns", "UndeclaredTurnError"]

_LEASE_MIN_S: Final = 25
"""The handler ends its job when a quarter of the lease is left, and a job is dead about 11 s after that: a beat without
an answer takes 6 s, and SIGTERM is followed by SIGKILL after 5. The holder keeps a fifth as its margin.
"""
_JOBS_MAX: Final = 100
_FORM: Final = (
    'must be a JSON object of scripts and their turns, as {"mutation.py": {"lock.name": "ORDERS", "name": "Mutation"}}'
)


class UndeclaredTurnError(Exception):
    """An event asks for a turn that its script has not; the message completes "coordination …"."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The keys `job.coordinator.…` of each job, by its script: a key below SCRIPT_BUCKET, or an s3:// path."""

    of_scripts: Mapping[str, tuple[Mapping[str, str], ...]] = field(default_factory=dict)

    @classmethod
    def parse(cls, found: object) -> Turns:
        """Check a declaration: an object of scripts, each with the keys of its job, or with a list of such objects.

        `ValueError` says what is wrong with it.
        """
        if not isinstance(found, dict):
            raise ValueError(_FORM)  # noqa: TRY004 - for pydantic
        turns = {script: _jobs(script, jobs) for script, jobs in found.items()}
        if sum(map(len, turns.values())) > _JOBS_MAX:
            raise ValueError(f"declares more than {_JOBS_MAX} jobs")
        return cls(turns)

    def of(self, script: Location, folder: Location | None, asked: Mapping[str, str] | None) -> Configuration | None:
        """Return the turn of a script; None: it has none. `asked` are an event's keys, with or without prefix.

        Raises `UndeclaredTurnError`.
        """
        declared = [
            keys for name, some in self.of_scripts.items() if _location(name, folder) == script for keys in some
        ]
        if asked is None:
            if len(declared) > 1:
                raise UndeclaredTurnError(f"is missing; {script} is {_names(declared)}, name one of these jobs")
            return Configuration.from_mapping(declared[0]) if declared else None
        keys = _prefixed(asked)
        for one in declared:
            turn = Configuration.from_mapping(one)
            if keys.items() >= {PREFIX + "name": turn.job}.items() and _of_keys({**one, **keys}) == turn:
                return turn
        raise UndeclaredTurnError(
            f"is not as the function's owner has declared it for {script}: {_names(declared)}; name a job of these with"
            " nothing that differs, leave the field out, or have the owner change SOAL_TURNS (context key turns)"
        )


def _jobs(script: str, found: object) -> tuple[Mapping[str, str], ...]:
    _location(script, Location.parse("s3://scripts"))
    jobs: list[Any] = found if isinstance(found, list) else [found]
    if not jobs:
        raise ValueError(_FORM)
    declared = []
    for job in jobs:
        if not isinstance(job, dict):
            raise ValueError(_FORM)  # noqa: TRY004 - for pydantic
        keys = _prefixed({key: str(value) for key, value in job.items()})
        try:
            turn = Configuration.from_mapping(keys)
        except SettingError as error:
            raise ValueError(f"{script}: {error.name} {error.problem}") from None
        if turn.backend:
            raise ValueError(f"{script}: {PREFIX}backend is set; all locks of a function are where SW_LOCKS says")
        if turn.lease_s < _LEASE_MIN_S:
            raise ValueError(
                f"{script}: {PREFIX}lease.seconds {turn.lease_s:g} is not enough: to end a job that loses its turn"
                f" takes up to {_LEASE_MIN_S} s"
            )
        declared.append(keys)
    if len({keys[PREFIX + "name"] for keys in declared}) < len(declared):
        raise ValueError(f"{script}: two jobs have one name; an event could not tell them apart")
    return tuple(declared)


def _location(script: str, folder: Location | None) -> Location | None:
    if script.startswith(("s3://", "s3a://")):
        return Location.parse(script)
    return None if folder is None else Location.parse(f"{folder}/{script.lstrip('/')}")


def _prefixed(keys: Mapping[str, str]) -> dict[str, str]:
    return {key if key.startswith(PREFIX) else PREFIX + key: value for key, value in keys.items()}


def _of_keys(keys: Mapping[str, str]) -> Configuration | None:
    try:
        return Configuration.from_mapping(keys)
    except SettingError:
        return None


def _names(declared: list[Mapping[str, str]]) -> str:
    jobs = [f"{keys[PREFIX + 'name']} on {keys[PREFIX + 'lock.name']}" for keys in declared]
    return " or ".join(jobs) if jobs else "no job"
