"""The turns that the function's owner declares (`SOAL_TURNS`): which script is which job of a lock, and in which order.

An event may only name one of them. So a sender of events can neither complete another job's turn nor change the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from handler.input_errors import InputError
from safewriter.coordination.configuration import PREFIX, Configuration
from safewriter.coordination.record import JOBS_MAX
from safewriter.errors import SettingError
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safewriter.objects import Location

__all__ = ["DeclaredTurn", "declared_turns", "turn_of"]

_LEASE_MIN_S: Final = 25
"""The handler ends its job when 1/4 of the lease is left, and the job is dead about 11 s later: a beat without an
answer takes 6 s, and SIGKILL follows SIGTERM after 5 s. Before the lease ends, there are that quarter and the fifth
that the holder keeps as its margin.
"""
_LEASE_MAX_S: Final = 900
"""A lock need not wait longer for a job that died. The time of a job is no bound: the handler renews its lease."""
_LOCK: Final = f"{PREFIX}lock.name"
_JOB: Final = f"{PREFIX}name"
_BACKEND: Final = f"{PREFIX}backend"
_OWNERS: Final = "declares the owner of the function, in SOAL_TURNS"
_FORM: Final = TypeAdapter(dict[str, dict[str, dict[str, str]]])


@dataclass(frozen=True, slots=True)
class DeclaredTurn:
    """A job of a lock. `script` is an S3 path, or a key below `SCRIPT_BUCKET`; `keys` are the job's `job.coordinator.…`
    with their prefix.
    """

    script: str
    keys: dict[str, str]

    @property
    def configuration(self) -> Configuration:
        """The job's configuration of the lock."""
        return Configuration.from_mapping(self.keys)


def declared_turns(value: object) -> object:
    """Parse `SOAL_TURNS`; `ValueError` names the lock, the job and the key of an error."""
    if not isinstance(value, str):
        return value
    try:
        locks = _FORM.validate_python(parsed(value), strict=True)
    except (ValueError, ValidationError):
        raise ValueError(
            'must be a JSON object of locks, their jobs and the keys of each, all strings, as {"LOCK": {"Ingestion":'
            ' {"script": "ingestion.py"}, "Mutation": {"script": "mutation.py", "predecessor": "Ingestion"}}}'
        ) from None
    for lock, jobs in locks.items():
        if len(jobs) > JOBS_MAX:
            raise ValueError(f"{lock} has {len(jobs)} jobs; a lock has {JOBS_MAX} at most")
    return tuple(_declared(lock, job, words) for lock, jobs in locks.items() for job, words in jobs.items())


def _declared(lock: str, job: str, words: Mapping[str, str]) -> DeclaredTurn:
    name = f"{lock}.{job}"
    if "script" not in words:
        raise ValueError(f"{name} has no script; name the one that is this job, by its key below SCRIPT_BUCKET")
    keys = _with_prefix({key: value for key, value in words.items() if key != "script"})
    if reserved := sorted(keys.keys() & {_LOCK, _JOB, _BACKEND}):
        raise ValueError(f"{name} sets {reserved[0]}: lock and job are names here, and SW_LOCKS is the lock service")
    turn = DeclaredTurn(words["script"], {**keys, _LOCK: lock, _JOB: job})
    try:
        lease_s = turn.configuration.lease_s
    except SettingError as error:
        raise ValueError(f"{name}: {error.name} {error.problem}") from None
    if not _LEASE_MIN_S <= lease_s <= _LEASE_MAX_S:
        raise ValueError(
            f"{name}: {PREFIX}lease.seconds {lease_s:g} is not between {_LEASE_MIN_S} and {_LEASE_MAX_S}; to end a job"
            f" that loses its turn takes up to {_LEASE_MIN_S} s"
        )
    return turn


def turn_of(
    script: Location, declared: tuple[DeclaredTurn, ...], fields: Mapping[str, str] | None, path: str
) -> Configuration | None:
    """Return the turn of an event's script: the only one `declared` for it, or the one that the event names.

    A declared script never runs without a turn. Raises `InputError` if the event deviates from the declaration.
    """
    keys = {} if fields is None else _keys_of(fields, path)
    if not declared:
        if fields is None:
            return None
        raise InputError(path, f"names a turn, and {script} has none; its turns {_OWNERS}")
    turns = declared
    for key in (_LOCK, _JOB):
        values = sorted({turn.keys[key] for turn in turns})
        turns = tuple(turn for turn in turns if keys.get(key, turn.keys[key]) == turn.keys[key])
        if not turns:
            raise InputError(f"{path}.{key}", f"{keys[key]!r} is not {' or '.join(values)}, which {_OWNERS}")
    if len(turns) > 1:
        names = " and ".join(f"{turn.keys[_JOB]} at {turn.keys[_LOCK]}" for turn in turns)
        raise InputError(path, f"names none of the turns of {script}, {names}; give it lock.name and name")
    (turn,) = turns
    for key, value in keys.items():
        _check_same(turn, key, value, path)
    return turn.configuration


def _check_same(turn: DeclaredTurn, key: str, value: str, path: str) -> None:
    """Check that a key of an event has the declared value; a number may be written differently."""
    try:
        is_same = Configuration.from_mapping({**turn.keys, key: value}) == turn.configuration
    except SettingError as error:
        if error.name == key:
            raise InputError(f"{path}.{key}", error.problem) from None
        is_same = False
    if not is_same:
        says = f"{turn.keys[key]!r}" if key in turn.keys else "the default"
        raise InputError(f"{path}.{key}", f"{value!r} is not {says}, which {_OWNERS}; leave it out")


def _keys_of(fields: Mapping[str, str], path: str) -> dict[str, str]:
    for key in fields:
        if key.startswith(PREFIX) and key.removeprefix(PREFIX) in fields:
            raise InputError(f"{path}.{key}", "stands here with its prefix and without; keep one of the two")
    keys = _with_prefix(fields)
    if _BACKEND in keys:
        raise InputError(f"{path}.{_BACKEND}", "is the function's to say; set SW_LOCKS for the function")
    return keys


def _with_prefix(keys: Mapping[str, str]) -> dict[str, str]:
    return {key if key.startswith(PREFIX) else PREFIX + key: value for key, value in keys.items()}
