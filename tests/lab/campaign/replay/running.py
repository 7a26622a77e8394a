"""Record the writes, and settle all their crash states, in several processes; finished states are skipped."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from tests.lab.campaign.record import STATES, StateRecord
from tests.lab.campaign.replay.recording import SUBJECTS, Recording, record
from tests.lab.campaign.replay.replaying import CrashState, Replayer
from tests.lab.campaign.workers import all_of, workers
from tests.lab.results import append, read

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

    from tests.lab.campaign.replay.recording import Subject
    from tests.lab.campaign.replay.replaying import Replayed

__all__ = ["replay", "run"]

_RECORDINGS: Final = "recordings"
_PARTS: Final = 4
"""The parts of a recording per process: small parts let the processes finish at about the same time."""


def run(
    folder: Path,
    chosen: Iterable[Subject],
    *,
    jobs: int,
    until: float | None,
    s3: str,
    progress: Callable[[], object],
) -> bool:
    """Settle what is missing of the writes; return whether all is done.

    No family of states begins after `until`, in epoch seconds. `s3`: the backend of the recordings.
    """
    states = (CrashState.parse(one.state) for one in read(folder / STATES, StateRecord))
    done = frozenset(one.name for one in states if one.event == "end")
    parts = jobs * _PARTS
    with workers(jobs) as pool:
        recordings = all_of([pool.submit(_recorded, folder, one, s3) for one in chosen], progress)
        return all(
            all_of(
                [
                    pool.submit(_settle, folder, one, done, until, part, parts)
                    for one in recordings
                    for part in range(parts)
                ],
                progress,
            )
        )


def replay(state: CrashState, folder: Path | None, s3: str) -> StateRecord:
    """Settle one state again: of the recording in a folder of results, or of a new one. Raises `ValueError`."""
    subject = next((one for one in SUBJECTS if one.name == state.subject), None)
    if subject is None:
        raise ValueError(f"{state.subject!r} is no recorded write; one is {SUBJECTS[0].name}")
    recording = record(subject, s3) if folder is None else _recorded(folder, subject, s3)
    if max(state.applied, state.late).bit_length() > len(recording.steps):
        raise ValueError(f"the recording of {subject.name} has {len(recording.steps)} steps, and {state.name} has more")
    with Replayer(recording) as replayer:
        return _line(replayer.replay(state))


def _recorded(folder: Path, subject: Subject, s3: str) -> Recording:
    """Return the folder's recording; make it first if there is none."""
    path = folder / _RECORDINGS / f"{subject.name}.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        made = path.with_suffix(".new")
        made.write_text(record(subject, s3).model_dump_json(), encoding="utf-8")
        made.rename(path)
    return Recording.model_validate_json(path.read_text(encoding="utf-8"))


def _settle(
    folder: Path, recording: Recording, done: Collection[str], until: float | None, part: int, parts: int
) -> bool:
    """Settle every `parts`-th family of states; return whether all of them are done."""
    with Replayer(recording) as replayer:
        for number, first in enumerate(replayer.families()):
            if number % parts != part or first.name in done:
                continue
            if until is not None and time.time() >= until:
                return False
            append(folder / STATES, *(_line(one) for one in replayer.family(first)))
    return True


def _line(found: Replayed) -> StateRecord:
    return StateRecord(
        state=found.state.name, verdict=found.verdict, landed=found.landed, violations=[*found.violations]
    )
