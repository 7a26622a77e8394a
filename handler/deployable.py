"""Whether a function with certain variables would refuse its events. The CDK app asks at synthesis, so that both refuse
the same, by the same code.
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
    """Return the variable, with a path in its value, and the problem, for which each event would be refused.

    `has_triggers`: some events are no job documents, and start the function's own script.
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
