"""The record of a build: its run, its place and its lease. Clean-up reads it, readers do not.

Source of the format: shardyfusion's `run.yaml` of version 1. JSON is YAML, so it is written as JSON.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from safewriter.parsing import parsed
from safewriter.snapshots.format.current import stamp

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RECORD_MAX_BYTES", "BuildDocument", "ended", "fields_of", "record_key"]

RECORD_MAX_BYTES: Final = 1 << 16
"""The longest message of an error takes 24 KiB."""
_FORMAT: Final = 1
_MESSAGE_LETTERS: Final = 4000
# YAML as other writers format the record: one field a line, with indented continuation lines.
_FIELD: Final = re.compile(
    r"^(\w+):[ \t]+(?:'([^'\n]*)'|\"([^\"\\\n]*)\"|([^'\"\s#&*!|>%@\[{][^\n]*))[ \t]*\r?$", re.MULTILINE
)
# Characters that JSON allows unescaped, and that YAML forbids or reads as the end of a line.
_ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildDocument:
    """The fields of a record. A run that has not renewed it by `lease_expires_at` is dead."""

    run_id: str
    status: Literal["running", "succeeded", "failed"]
    started_at: datetime
    updated_at: datetime
    lease_expires_at: datetime
    s3_prefix: str
    shard_prefix: str
    db_path_template: str
    writer_type: str = "spark"
    manifest_ref: str | None = None
    error_type: str | None = None
    error_message: str | None = None

    def encode(self) -> bytes:
        """Return the file, with a long error message truncated."""
        fields = {
            name: stamp(value) if isinstance(value, datetime) else value[:_MESSAGE_LETTERS] if value else value
            for name, value in asdict(self).items()
        }
        return _encoded({**fields, "format_version": _FORMAT})


def fields_of(body: bytes) -> dict[str, Any]:
    """Return a record's fields: all of JSON, and of YAML those with simple texts. Raises `ValueError` for a record that
    is not UTF-8, or whose texts cannot be encoded as UTF-8: they become keys.
    """
    try:
        record = parsed(body)
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise
    except ValueError:
        lines = _FIELD.findall(body.decode())
        return {name: quoted or double or plain.rstrip() for name, quoted, double, plain in lines}
    return dict(record)


def ended(body: bytes, now: datetime, manifest_ref: str | None) -> bytes | None:
    """Return a `running` record with the outcome of the settled run; None for any other record.

    `manifest_ref`: the manifest that the run has published, if any.
    """
    try:
        record = parsed(body)
        if record["status"] != "running":
            return None
    except (TypeError, KeyError, ValueError):
        return None
    record |= {"updated_at": stamp(now), "lease_expires_at": stamp(now), "manifest_ref": manifest_ref}
    if manifest_ref is not None:
        return _encoded({**record, "status": "succeeded"})
    message = "the build was killed, and its objects were removed"
    return _encoded({**record, "status": "failed", "error_type": "Killed", "error_message": message})


def _encoded(fields: Mapping[str, object]) -> bytes:
    # YAML does not join an escaped surrogate pair into one character as JSON does, so do not escape characters.
    text = json.dumps(fields, sort_keys=True, indent=1, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode(errors="replace")


def record_key(prefix: str, run_id: str, started: datetime, token: str) -> str:
    """Return the key of a run's record. The token distinguishes runs with the same name."""
    return f"{prefix}/{stamp(started)}_run_id={run_id}_{token}/run.yaml"
