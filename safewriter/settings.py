"""SafeWriter's settings from the environment; explicit arguments win."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from safewriter.deadline import milliseconds
from safewriter.errors import SettingError
from safewriter.objects.location import Location
from safewriter.schedule import LEAD_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Settings", "audits", "bucket_of"]

_BOOLEANS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the checkpoint documents live, how early the watchdog acts, and whether rollbacks are audited."""

    checkpoint_bucket: Location
    warn_before_ms: int = LEAD_MS
    audit_log: bool = True

    @classmethod
    def from_environment(
        cls,
        environment: Mapping[str, str],
        *,
        checkpoint_bucket: str | None = None,
        warn_before_ms: int | None = None,
    ) -> Settings:
        """Read `SW_CHECKPOINT_BUCKET`, `SW_WARN_BEFORE_MS`, `SW_AUDIT_LOG`; arguments win.

        Raises `SettingError`, which names the variable, for a value that cannot be used.
        """
        bucket = environment.get("SW_CHECKPOINT_BUCKET", "") if checkpoint_bucket is None else checkpoint_bucket
        if warn_before_ms is None:
            warn_before_ms = milliseconds(environment, "SW_WARN_BEFORE_MS")
        if warn_before_ms is not None and warn_before_ms <= 0:
            raise SettingError("SW_WARN_BEFORE_MS", "0 leaves no time to settle a write; leave it out for 30000")
        return cls(
            checkpoint_bucket=bucket_of(bucket),
            warn_before_ms=LEAD_MS if warn_before_ms is None else warn_before_ms,
            audit_log=audits(environment),
        )


def audits(environment: Mapping[str, str]) -> bool:
    """Return whether rollbacks are audited: `SW_AUDIT_LOG`. Raises `SettingError`."""
    return _boolean(environment, "SW_AUDIT_LOG", default=True)


def bucket_of(text: str) -> Location:
    """Parse `bucket` or `bucket/prefix`, with or without `s3://` before it. Raises `SettingError`."""
    if not text:
        raise SettingError(
            "SW_CHECKPOINT_BUCKET", "is not set; name the bucket (optionally bucket/prefix) for checkpoints"
        )
    try:
        location = Location.parse(text if "://" in text else f"s3://{text}")
    except ValueError as error:
        raise SettingError("SW_CHECKPOINT_BUCKET", str(error)) from None
    return Location(location.bucket, location.key.strip("/"))


def _boolean(environment: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Read true, false, 1, 0, yes or no, in any case. Raises `SettingError`, which names the variable, otherwise."""
    text = environment.get(name)
    if text is None:
        return default
    try:
        return _BOOLEANS[text.strip().lower()]
    except KeyError:
        raise SettingError(name, f"{text!r} is neither true nor false") from None
