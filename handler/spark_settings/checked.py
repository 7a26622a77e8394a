"""Check the Spark settings of an event: an event may bring them, and Spark accepts their values.

Three lists decide, in this order: settings that are always fixed (`fixed`), that an event may bring (`allowed`), and
that the function's owner has allowed besides (`SOAL_CONF_ALLOW`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from handler.input_errors import InputError, described
from handler.spark_settings.allowed import form_of
from handler.spark_settings.fixed import is_outside_tmp, why_fixed, why_replaced
from handler.variables import SPARK_SETTING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["Permit", "check_conf", "check_own_conf", "check_text"]

_VALUE_MAX_LENGTH: Final = 4096
_CONF_MAX_ENTRIES: Final = 200
_READ_HERE: Final = frozenset({"spark.driver.memory", "spark.driver.cores"})
"""The handler derives JVM options from these, so it checks their form even with an owner's permit."""
_S3A: Final = "spark.hadoop.fs.s3a."
_CATALOG: Final = re.compile(r"spark\.sql\.catalog\.[^.]+")
_PARTITION: Final = re.compile(r"(?:cn|us-gov|us-iso[a-z]?|eu-iso[a-z]?|eusc)-")
"""The beginning of a region's name tells AWS's partition; the names of the public one have no common beginning."""


@dataclass(frozen=True, slots=True)
class Permit:
    """Settings that the function's owner lets events bring; in both patterns `*` stands for any text."""

    key: str
    value: str = "*"

    @classmethod
    def parse(cls, text: str) -> Permit:
        """Parse `KEY` or `KEY=VALUE`; `ValueError` describes the problem."""
        key, equals, value = text.partition("=")
        if not key.startswith("spark."):
            raise ValueError(f"{text!r} must be a setting that begins with 'spark.', as KEY or KEY=VALUE")
        return cls(key, value if equals else "*")

    def covers(self, key: str, value: str) -> bool:
        """Return whether the permit allows a setting."""
        return _fits(self.key, key) and _fits(self.value, value)


def check_conf(
    conf: Mapping[str, str],
    field: str,
    *,
    permits: tuple[Permit, ...],
    owned: Collection[str],
    region: str | None,
) -> None:
    """Raise `InputError` for the settings that an event may not bring; `field` is the field with the settings.

    `owned` are the names of the function's own settings: an event may not change any of them, not even for one bucket,
    nor any property of a catalog that they define. `region` is the function's own.
    """
    _check_number(conf, field)
    units, wrong = {_catalog_or_key(key) for key in owned}, []
    for key, value in conf.items():
        problem = _problem(key, value)
        if problem is None and (_catalog_or_key(key) in units or _is_for_one_bucket(key, owned)):
            problem = "is the function's own setting (SOAL_CONF, SOAL_SECRETS); leave it out"
        if problem := problem or _refusal(key, value, permits, region or ""):
            wrong.append(InputError(_path(field, key), problem))
    if wrong:
        raise InputError.of(wrong)


def check_own_conf(conf: Mapping[str, str], field: str) -> None:
    """Raise `InputError` for the first setting that not even the function's owner may change."""
    _check_number(conf, field)
    for key, value in conf.items():
        if problem := _problem(key, value):
            raise InputError(_path(field, key), problem)


def _fits(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None


def _catalog_or_key(key: str) -> str:
    """Return the unit that belongs together: the catalog for a property of a catalog, else the setting itself."""
    catalog = _CATALOG.match(key)
    return key if catalog is None else catalog[0]


def _is_for_one_bucket(key: str, owned: Collection[str]) -> bool:
    """Return whether a setting for one bucket would override one of `owned`, which applies to all buckets."""
    general = (setting.removeprefix(_S3A) for setting in owned if setting.startswith(_S3A))
    return key.startswith(f"{_S3A}bucket.") and key.endswith(tuple(f".{name}" for name in general))


def _check_number(conf: Mapping[str, str], field: str) -> None:
    if len(conf) > _CONF_MAX_ENTRIES:
        raise InputError(field, f"has {len(conf)} settings; {_CONF_MAX_ENTRIES} are allowed")


def _path(field: str, key: str) -> str:
    return f"{field}.{key if key.isprintable() else described(key)}"


def _partition(region: str) -> str:
    found = _PARTITION.match(region.lower())
    return "" if found is None else found[0]


def _problem(key: str, value: str) -> str | None:
    if (why := why_fixed(key)) is not None:
        return f"may not be set by a job: {why}"
    if not SPARK_SETTING.fullmatch(key):
        return "is not the name of a Spark setting; it must begin with 'spark.'"
    if key in _READ_HERE and (form := form_of(key)) is not None and not form.fits(value):
        return f"must be {form.says}, not {described(value)}"
    return check_text(value)


def check_text(value: str) -> str | None:
    """Return the problem with a value that no setting may have; None if there is none."""
    if len(value) > _VALUE_MAX_LENGTH:
        return f"has {len(value)} characters; {_VALUE_MAX_LENGTH} are allowed"
    if not value.isprintable():
        return f"holds a control character: {described(value)}"
    if (why := why_replaced(value)) is not None:
        return why
    if is_outside_tmp(value):
        return f"{described(value)} is outside /tmp, and nothing else can be written here; use an s3a:// path"
    return None


def _refusal(key: str, value: str, permits: tuple[Permit, ...], region: str) -> str | None:
    if any(permit.covers(key, value) for permit in permits):
        return None
    form = form_of(key)
    if form is None:
        return (
            "is not a setting that an event may bring; set it in the script, or have the function's owner set it"
            " (SOAL_CONF) or allow it (SOAL_CONF_ALLOW)"
        )
    if not form.fits(value):
        return f"must be {form.says}, not {described(value)}"
    if key.endswith(".endpoint.region") and _partition(value) != _partition(region):
        # A bucket of public data is read without credentials, so that another's would pass for the job's.
        return f"{value} is in another partition of AWS, where a bucket of this name may be anybody's; leave it out"
    return None
