"""Which Spark settings a job may bring: everything that does not leave the sandbox and does not switch off the guard.

The rules protect from mistakes, not from the script itself, which can do whatever the function's role allows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from handler.fixed_settings import is_outside_tmp, why_fixed
from handler.usage import UsageError, found

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_conf"]

_VALUE_MAX_LENGTH: Final = 4096
_CONF_MAX_ENTRIES: Final = 200
_KEY: Final = re.compile(r"spark\.[A-Za-z0-9_.\-]{1,250}")
_MEMORY: Final = re.compile(r"[1-9][0-9]{0,6}[kmgtKMGT]b?")


def check_conf(conf: Mapping[str, str], field: str) -> None:
    """Raise `UsageError` for the first setting that a job may not bring; `field` is where the settings were found."""
    if len(conf) > _CONF_MAX_ENTRIES:
        raise UsageError(field, f"has {len(conf)} settings; {_CONF_MAX_ENTRIES} are allowed")
    for key, value in conf.items():
        path = f"{field}.{key if key.isprintable() else found(key)}"
        if problem := _problem(key, value):
            raise UsageError(path, problem)


def _problem(key: str, value: str) -> str | None:
    if (why := why_fixed(key)) is not None:
        return f"may not be set by a job: {why}"
    if not _KEY.fullmatch(key):
        return "is not the name of a Spark setting; it must begin with 'spark.'"
    if len(value) > _VALUE_MAX_LENGTH:
        return f"has {len(value)} characters; {_VALUE_MAX_LENGTH} are allowed"
    if not value.isprintable():
        return f"holds a control character: {found(value)}"
    if is_outside_tmp(value):
        return f"{found(value)} is outside /tmp, and nothing else can be written here; use an s3a:// path or /tmp"
    return _special(key, value)


def _special(key: str, value: str) -> str | None:
    if key == "spark.sql.catalogImplementation" and value != "in-memory":
        return "only 'in-memory' is in this image; use tables by path or an Iceberg catalog"
    if key == "spark.driver.memory" and not _MEMORY.fullmatch(value):
        return f"must be a size such as 1500m or 2g, not {found(value)}"
    if key == "spark.driver.cores" and not re.fullmatch(r"[1-9][0-9]?", value):
        return f"must be a number of cores from 1 to 99, not {found(value)}"
    return None
