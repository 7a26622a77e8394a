"""Build the variables of the stack's functions from the product's list of variables and the context."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from handler.variables import VARIABLES, Reader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.config import Config

BYTES_MAX: Final = 4096
"""https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""
_BUCKET_NAME_MAX: Final = 63
_TABLE_NAME_MAX: Final = 255
_CATALOGS: Final = "spark.sql.catalog."


@dataclass(frozen=True, slots=True)
class Resources:
    """The stack's resources that functions need to know, as CloudFormation references."""

    service: str
    checkpoint_bucket: str
    script_bucket: str
    locks: str = ""
    """The table of locks in the form of `SW_LOCKS`; empty: there is none."""

    @classmethod
    def longest(cls, config: Config) -> Self:
        """Return names of the greatest length that CloudFormation can make."""
        name = "x" * _BUCKET_NAME_MAX
        scripts = name if config.scripts is None else str(config.scripts)
        locks = f"dynamodb://{'x' * _TABLE_NAME_MAX}" if config.coordination == "dynamodb" else ""
        return cls(config.stack_name, name, scripts, locks)


def job_environment(config: Config, resources: Resources) -> dict[str, str]:
    """Return the variables of the job's function: the owner's, the context's, the stack's."""
    return {
        **config.environment,
        **_of_context(config, Reader.JOB),
        **_shared(resources),
        "SCRIPT_BUCKET": resources.script_bucket,
        **({"SW_LOCKS": resources.locks} if resources.locks else {}),
    }


def microvm_environment(config: Config, resources: Resources) -> dict[str, str]:
    """Return the variables of a MicroVM image: the job's, with a MicroVM's time and memory."""
    own = config.model_copy(update={"timeout_s": config.microvm_timeout_s})
    return {**job_environment(own, resources), "SOAL_MEMORY_MB": str(config.microvm_memory_mb)}


def sweeper_environment(config: Config, resources: Resources) -> dict[str, str]:
    """Return the variables of the sweeper, including the owner's variables and Spark settings for catalogs: it reaches
    no catalog that only a document names.
    """
    catalogs = {key: value for key, value in config.conf.items() if key.startswith(_CATALOGS)}
    narrowed = config.model_copy(update={"secrets": config.catalog_secrets, "conf": catalogs})
    return {**config.catalog_environment, **_of_context(narrowed, Reader.SWEEPER), **_shared(resources)}


def redrive_environment(
    config: Config, resources: Resources, *, function: str, queue: str, parked: str, jobs: str | None
) -> dict[str, str]:
    """Return the variables of the redrive's function; it reads no documents."""
    return {
        **_of_context(config, Reader.REDRIVE),
        "POWERTOOLS_SERVICE_NAME": resources.service,
        "SOAL_REDRIVE_FUNCTION": function,
        "SOAL_REDRIVE_QUEUE": queue,
        "SOAL_REDRIVE_PARKED": parked,
        **({} if jobs is None else {"SOAL_REDRIVE_JOBS": jobs}),
    }


def size_bytes(environment: Mapping[str, str]) -> int:
    """Measure variables as Lambda does: as JSON. Its own message says so ("4KB limit. String measured: {…}")."""
    return len(json.dumps(environment, ensure_ascii=False, separators=(",", ":")).encode())


def _shared(resources: Resources) -> dict[str, str]:
    # Metrics carry the service's name, so that two stacks in one account do not raise each other's alarms. Powertools
    # filters levels: Lambda's own filter would drop metrics, which are lines without a level.
    return {"POWERTOOLS_SERVICE_NAME": resources.service, "SW_CHECKPOINT_BUCKET": resources.checkpoint_bucket}


def _of_context(config: Config, reader: Reader) -> dict[str, str]:
    """Return the variables that are context keys, except those at their default, since space is limited."""
    texts = {
        variable: _text(getattr(config, variable.key))
        for variable in VARIABLES
        if variable.key is not None and reader in variable.readers
    }
    return {variable.name: text for variable, text in texts.items() if text not in ("", variable.default)}


def _text(value: object) -> str:
    """Return a value of the context as a variable's text; empty for no value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return json.dumps(value, separators=(",", ":")) if value else ""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "" if value is None else str(value)
