"""Check that an attempt may continue a run: it must be the same job for the same event, with the same settings, and
with the same code or the owner's permission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handler.input_errors import InputError
from handler.runs.record import RUNNING

if TYPE_CHECKING:
    from handler.request.job import Job
    from handler.runs.record import RunRecord

__all__ = ["check_same_job", "is_same_code", "of_completed_turn"]

_HASH_SHOWN: Final = 12
_HOW: Final = (
    'If this attempt continues the run, add "acceptChangedScript": true to its event (or set'
    " SOAL_ACCEPT_CHANGED_SCRIPT=on for the function): committed writes are skipped. Else give a token of its own"
)


def check_same_job(before: RunRecord, now: RunRecord, job: Job, *, repeats: bool = False) -> None:
    """Raise `InputError` unless this attempt may continue the run. Steps and parts are identified by name, and another
    script, or another time zone or default catalog, may mean other rows by the same name. `repeats`: the run has
    already completed its turn and holds the lock outside the order, which is allowed only to the same script.
    """
    field = _field(job)
    if before.fingerprint != now.fingerprint:
        raise InputError(
            field,
            f"{job.run_key!r} was used before for {before.entry_point}, or with other arguments; a retry must be the"
            " same job, and another job needs a token of its own",
        )
    if None not in (before.turn, now.turn) and before.turn != now.turn:
        raise InputError(
            field,
            f"{job.run_key!r} was used before for {_turn(before)}, and now it is for {_turn(now)}: a job whose writes"
            " are skipped would complete that turn. A turn needs a token of its own",
        )
    if before.event not in (None, now.event):
        raise InputError(
            "event",
            f"{job.run_key!r} was used before {_of_event(before)}, and now comes {_of_event(now)}: the rows of the one"
            " would pass for those of the other. Deliver the event as it was first, or start a run of its own: by"
            " another id, or another token",
        )
    has_nothing = not before.may_hold_writes and before.state != RUNNING
    if not has_nothing and before.settings not in (None, now.settings):
        raise InputError(
            field,
            f"{job.run_key!r} has, or may have, committed writes of attempt {before.attempt}, whose event had other"
            " Spark settings (conf, sparkSubmitParameters): its steps may mean other rows by the same names. Give it"
            " the settings that it had, or a token of its own; memory and the number of partitions may change",
        )
    if repeats and now.code not in (None, before.code):
        raise of_completed_turn(job, "its script has changed since")
    if has_nothing or job.accept_changed_script:
        return
    if before.of_several_scripts:
        raise InputError(
            field,
            f"{job.run_key!r} has, or may have, committed writes of more than one script: the word acceptChangedScript"
            f" has let other code continue it, and holds for the attempts of its own event only. {_HOW}",
        )
    if is_same_code(before, now):
        return
    raise InputError(
        field,
        f"{job.run_key!r} has, or may have, committed writes, and this attempt brings other code than the run had until"
        f" now ({now.entry_point}: SHA-256 {_hash_of(before)} until now, {_hash_of(now)} in this attempt): its steps"
        f" may mean other rows by the same names. {_HOW}",
    )


def is_same_code(before: RunRecord, now: RunRecord) -> bool:
    """Return whether both records have the hash of the code, and it is the same."""
    return None in (before.code, now.code) or before.code == now.code


def of_completed_turn(job: Job, problem: str) -> InputError:
    """Return the error for a run that may not repeat its completed turn outside the lock's order."""
    return InputError(
        _field(job), f"{job.run_key!r} has completed its turn, and {problem}: a turn of its own needs another token"
    )


def _field(job: Job) -> str:
    return "clientToken" if job.client_token is not None else "event"


def _turn(record: RunRecord) -> str:
    lock, name = record.turn or ("", "")
    return f"the turn of {name} on {lock}"


def _of_event(record: RunRecord) -> str:
    return f"with an event of SHA-256 {record.event[:_HASH_SHOWN]}" if record.event else "without an event"


def _hash_of(record: RunRecord) -> str:
    return (record.code or "")[:_HASH_SHOWN]
