"""Judge a schedule at its end: the callers' history, the documents, and what is left over."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deltalake import DeltaTable

from tests.lab.campaign.schedules.linearizable import NEVER, Operation, is_linearizable
from tests.lab.campaign.schedules.log import LAKE, ROOT
from tests.lab.campaign.schedules.wire import Fault
from tests.lab.campaign.schedules.witness import BUCKET, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.campaign.schedules.jobs import Call, Look
    from tests.lab.campaign.schedules.plan import Plan
    from tests.lab.campaign.schedules.stage import Stage

__all__ = ["judge"]

_READ_EACH: Final = 50
"""Of so many seeds deltalake reads the table of one, which takes as long as to play a schedule."""
_LATER: Final = {Fault.FREEZE, Fault.FREEZE_AFTER, Fault.LATE, Fault.KILL_LATE, Fault.SLOW}
"""A file that arrives behind an attempt's grace may stay."""


def judge(stage: Stage) -> None:
    """Note each promise that was broken in a schedule which has ended."""
    for name, error in stage.world.errors:
        stage.broke("harness_error", f"{name}: {type(error).__name__}: {error}")
    for key in sorted({call.key for call in stage.calls}):
        found = stage.s3.bucket(BUCKET).get(f"checkpoints/{key}.json")
        status = None if found is None else json.loads(found.body)["status"]
        if status != "committed":
            stage.broke("unknown", f"in the end the document of {key} says {status}")
    if not is_linearizable(_history(stage), (("", False),) * len(stage.plan.batches)):
        stage.broke("order", "no order of the calls explains what the callers and the readers saw")
    for key in _left_over(stage):
        stage.broke("orphans", f"{key} is left")
    if stage.plan.seed % _READ_EACH == 0:
        _compare(stage)


def _left_over(stage: Stage) -> list[str]:
    markers = stage.s3.listed(BUCKET, "open/", "")
    if _may_leave_files(stage.plan):
        return markers
    files = (key.removeprefix(f"{ROOT}/") for key in stage.s3.bucket(LAKE))
    return [*markers, *(name for name in files if rows_of(name) is not None and name not in stage.witness.live)]


def _may_leave_files(plan: Plan) -> bool:
    """Return whether a file of a job may arrive when its attempt counts as clean."""
    return any(
        one.skew_ms or any(hit.fault in _LATER for _, _, hit in (*one.faults, *one.handler_faults))
        for one in plan.members
    )


def _compare(stage: Stage) -> None:
    """Compare the fold of the log with what deltalake reads."""
    with tempfile.TemporaryDirectory(dir=stage.folder) as folder:
        log = Path(folder, "_delta_log")
        log.mkdir()
        for key in stage.s3.listed(LAKE, f"{ROOT}/_delta_log/", ""):
            (log / key.rpartition("/")[2]).write_bytes(stage.s3.bucket(LAKE)[key].body)
        read = sorted(uri.rpartition("/")[2] for uri in DeltaTable(folder).file_uris())
    folded = sorted(stage.witness.live.elements())
    if read != folded:
        stage.broke("gap", f"deltalake reads {read}, and the fold of the log is {folded}")


# -- the history -------------------------------------------------------------------------------------------------------


def _history(stage: Stage) -> list[Operation[Any]]:
    """Return the operations: their state is for each batch the attempt that is there, and whether it has to stay."""
    operations: list[Operation[Any]] = []
    for call in stage.calls:
        operations += _of_call(call, NEVER if call.answered is None else call.answered, len(operations))
    batches = {call.key: call.batch for call in stage.calls}
    return [*operations, *(Operation(_reading(look, batches), look.called, look.answered) for look in stage.looks)]


def _of_call(call: Call, answered: float, number: int) -> list[Operation[Any]]:
    batch, nonce = call.batch, call.nonce

    def lands(state: Any) -> Any:
        return _with(state, batch, (nonce, False)) if not state[batch][0] else None

    def is_done(state: Any) -> Any:
        return _with(state, batch, (nonce, True)) if state[batch][0] in ("", nonce) else None

    def is_there(state: Any) -> Any:
        return _with(state, batch, (state[batch][0], True)) if state[batch][0] else None

    def goes(state: Any) -> Any:
        return _with(state, batch, ("", False)) if state[batch] == (nonce, False) else None

    def is_gone(state: Any) -> Any:
        return state if state[batch][0] != nonce else None

    if not nonce:
        return []
    if call.outcome == "done":
        return [Operation(is_done, call.called, answered)]
    if call.outcome in ("there", "failed", "nothing"):
        # Its own rows may have been there for a while, whoever's are there in the end.
        return [
            Operation(lands, call.called, answered, required=False, before=number + 2),
            Operation(goes, call.called, answered, required=False),
            Operation(is_there if call.outcome == "there" else is_gone, call.called, answered),
        ]
    return [
        Operation(lands, call.called, required=False),
        *([Operation(goes, call.called, required=False)] if call.undoable else []),
    ]


def _with(state: Any, batch: int, value: Any) -> Any:
    return (*state[:batch], value, *state[batch + 1 :])


def _reading(look: Look, batches: dict[str, int]) -> Callable[[Any], Any]:
    seen = {batches[rows.key]: rows.nonce for rows in look.rows}
    is_single = len({(rows.key, rows.nonce) for rows in look.rows}) == len(seen)

    def act(state: Any) -> Any:
        same = is_single and all(seen.get(batch, "") == nonce for batch, (nonce, _) in enumerate(state))
        return state if same else None

    return act
