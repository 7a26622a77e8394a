"""Check whether a function would refuse its events for its variables. The CDK app calls this at synthesis, so that
stack and function apply the same rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from handler.input_errors import InputError
from handler.settings import read_settings
from handler.spark.machine import Machine, heap_mb

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["refusal"]


def refusal(environment: Mapping[str, str], *, memory_mb: int, has_triggers: bool) -> tuple[str, str] | None:
    """Return the variable, with a path in its value, and the problem for which the function would refuse every event;
    None if it would not.

    `has_triggers`: some events are not job documents and start the function's own script.
    """
    try:
        settings = read_settings(environment)
        heap_mb(settings.conf, Machine(memory_mb, cores_present=1))
    except InputError as error:
        return error.field, error.problem
    script = settings.script
    if has_triggers and script is not None and len(turns := settings.turns_of(script)) > 1:
        names = " and ".join(f"{turn.configuration.job} at {turn.configuration.lock}" for turn in turns)
        return "SOAL_TURNS", f"{script.name} is {names}, and events of triggers name no turn; give it one of them only"
    return None
