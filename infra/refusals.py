"""Settings with which the function would be deployed, and would then refuse each event: the handler's own check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handler.deployable import refusal
from handler.variables import VARIABLES
from infra.config_error import ConfigError
from infra.environment import Made, job_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.config import Config

__all__ = ["refusals", "unknown_predecessors"]

_KEYS: Final = {variable.name: variable.key for variable in VARIABLES if variable.key is not None}
_OF_ONE_VALUE: Final = {"memory size": "memory_mb", "conf": "conf"}
_PREDECESSOR: Final = "predecessor"


def refusals(config: Config) -> Iterator[ConfigError]:
    """Find what the handler would refuse; the error names the context key."""
    # The names are those in the handler's messages, which speak of keys below SCRIPT_BUCKET.
    made = Made(config.stack_name, "checkpoints", "scripts" if config.scripts is None else str(config.scripts))
    has_triggers = config.schedule is not None or config.s3_trigger is not None
    found = refusal(job_environment(config, made), memory_mb=config.memory_mb, has_triggers=has_triggers)
    if found is None:
        return
    (path, problem) = found
    variable, _, rest = path.partition(".")
    key = _KEYS.get(variable) or _OF_ONE_VALUE.get(variable, "environment")
    what = rest if key in ("conf", "turns") else variable if key == "environment" else getattr(config, key)
    yield ConfigError(key, what or "…", problem)


def unknown_predecessors(config: Config) -> list[str]:
    """Return the jobs that wait for one of which the stack knows nothing: it may take its turns elsewhere."""
    return [
        f"{lock}.{job} waits for {before}"
        for lock, jobs in config.turns.items()
        for job, keys in jobs.items()
        for key, before in keys.items()
        if key.removeprefix("job.coordinator.") == _PREDECESSOR and before not in jobs
    ]
