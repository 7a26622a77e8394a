"""`_CURRENT`, which points to the manifest of the current snapshot: the only object that changes.

Source of the format: shardyfusion's `_CURRENT` of version 1. Its readers ignore unknown members; we add `version`,
`fencing_token`, `published`, `fenced`, `history` and `nonce`. Settlers import this module, so it needs no package that
only snapshots need.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self

from safewriter.bounds import count, short, whole
from safewriter.entropy import unique_id
from safewriter.parsing import parsed
from safewriter.snapshots.errors import ManifestParseError, ManifestPublishError
from safewriter.snapshots.format.places import canonical_url

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CONTENT_TYPE",
    "CURRENT",
    "CURRENT_MAX_BYTES",
    "Current",
    "ManifestAt",
    "Past",
    "Publication",
    "manifest_key",
    "stamp",
]

CONTENT_TYPE: Final = "application/x-sqlite3"
CURRENT: Final = "_CURRENT"
CURRENT_MAX_BYTES: Final = 2 << 20
"""Room for 7,000 guarded builds in the last week, one in 90 seconds: each takes about 300 bytes."""
_VALUES_MAX: Final = 100_000
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_FORMAT: Final = 1
_KEPT_MS: Final = 7 * 86_400_000
_PAST: Final = 100


@dataclass(frozen=True, slots=True)
class Publication:
    """The mark of a guarded build, kept in `_CURRENT` for a week: it shows a settler that the build has landed."""

    version: int
    manifest_ref: str
    rows: int
    bytes: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class ManifestAt:
    """A manifest in the store, with the SHA-256 of its file; None if that is unknown."""

    ref: str
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Past:
    """A publication: a manifest, when it was made current, and its SHA-256 (None before 0.1.0 or by other programs)."""

    manifest_ref: str
    at: str
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """The content of `_CURRENT`.

    `manifest_ref` is None before the first publication, if a settler has fenced a build or a turn has noted its token.
    `version` counts the publications. `fencing_token` is that of the last turn in which a build began. `published` and
    `fenced` have the guarded builds of the last week, by the names of their attempts. A fenced build cannot publish any
    more; its value is the time of the fence (epoch milliseconds). `nonce` is new in each body, so that no two bodies or
    ETags are equal.
    """

    manifest_ref: str | None
    run_id: str | None
    updated_at: str
    version: int = 0
    fencing_token: int | None = None
    published: Mapping[str, Publication] = field(default_factory=dict)
    fenced: Mapping[str, int] = field(default_factory=dict)
    history: tuple[Past, ...] = ()
    """The last publications, the newest first."""
    nonce: str = field(default_factory=unique_id)

    def encode(self) -> bytes:
        """Return the JSON document. Raises `ManifestPublishError` if it is too large, or `decode` would refuse it."""
        fields = {**asdict(self), "format_version": _FORMAT, "manifest_content_type": CONTENT_TYPE}
        needed = ("manifest_ref", "run_id")
        body = json.dumps(
            {key: value for key, value in fields.items() if value is not None or key in needed}, sort_keys=True
        ).encode()
        if len(body) > CURRENT_MAX_BYTES:
            raise ManifestPublishError(
                f"{CURRENT} would have {len(body):,} bytes, more than the {CURRENT_MAX_BYTES:,} that are read: it names"
                " the guarded builds of a week. Build less often, or under a shorter prefix"
            )
        try:
            self.decode(body, CURRENT)
        except ManifestParseError as error:
            raise ManifestPublishError(f"nobody could read {CURRENT} any more, so it stays: {error}") from error
        return body

    @classmethod
    def decode(cls, body: bytes, where: str) -> Self:
        """Read the document. Raises `ManifestParseError`."""
        try:
            fields = parsed(body, values_max=_VALUES_MAX)
            version = fields.get("format_version", _FORMAT)
            ref, run_id, token = fields["manifest_ref"], fields["run_id"], fields.get("fencing_token")
            current = cls(
                manifest_ref=None if ref is None else canonical_url(ref),
                run_id=None if run_id is None else str(run_id),
                updated_at=str(fields["updated_at"]),
                version=_counted(
                    "version", fields.get("version", 0 if ref is None else 1)
                ),  # another program counts nothing
                fencing_token=None if token is None else _counted("fencing_token", token),
                published={name: _publication(mark) for name, mark in (fields.get("published") or {}).items()},
                fenced={name: whole(at_ms) for name, at_ms in (fields.get("fenced") or {}).items()},
                history=tuple(
                    Past(canonical_url(row["manifest_ref"]), _moment(row["at"]), _digest(row.get("sha256")))
                    for row in fields.get("history") or ()
                ),
                nonce=str(fields.get("nonce", "")),
            )
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise ManifestParseError(
                f"{where} does not say which snapshot is current: {short(error)}. Restore an earlier version of the"
                " object"
            ) from error
        if version != _FORMAT:
            raise ManifestParseError(f"{where} has format_version {short(version)}; this code knows {_FORMAT}")
        return current

    @property
    def has_all(self) -> bool:
        """Whether `history` has all publications."""
        return len(self.history) >= self.version

    @classmethod
    def absent(cls, now: datetime) -> Self:
        """Return the content before the first publication: it points to no manifest."""
        return cls(manifest_ref=None, run_id=None, updated_at=stamp(now))

    def has_published(self, manifest_ref: str, attempt: str | None, since: int) -> bool:
        """Return whether a manifest was made current after version `since`, or by the attempt."""
        young = self.history[: max(0, self.version - since)]
        return attempt in self.published or any(past.manifest_ref == manifest_ref for past in young)

    def names(self, manifest_ref: str) -> bool:
        """Return whether a manifest is current, or is in the history."""
        return manifest_ref == self.manifest_ref or any(past.manifest_ref == manifest_ref for past in self.history)

    def sha256_of(self, manifest_ref: str) -> str | None:
        """Return the SHA-256 with which a manifest was made current; None if that is unknown."""
        return next((past.sha256 for past in self.history if past.manifest_ref == manifest_ref and past.sha256), None)

    @property
    def has_forgotten(self) -> bool:
        """Whether the history is full, so that older publications may be missing."""
        return len(self.history) >= _PAST

    def changed(self, **changes: Any) -> Self:  # noqa: ANN401 - fields of this class
        """Return a copy with these changes and a new nonce."""
        return replace(self, **changes, nonce=unique_id())

    def moved(
        self,
        manifest_ref: str,
        run_id: str,
        now: datetime,
        *,
        sha256: str | None = None,
        **changes: Any,  # noqa: ANN401 - as above
    ) -> Self:
        """Return a copy that points to another manifest."""
        return self.changed(
            manifest_ref=manifest_ref,
            run_id=run_id,
            updated_at=stamp(now),
            version=self.version + 1,
            history=(Past(manifest_ref, stamp(now), sha256), *self.history)[:_PAST],
            **changes,
        )

    def with_publication(self, name: str, publication: Publication) -> dict[str, Publication]:
        """Return `published` with one more mark, without those that are at least a week older."""
        young = {key: mark for key, mark in self.published.items() if publication.at_ms - mark.at_ms < _KEPT_MS}
        return {**young, name: publication}

    def with_fence(self, name: str, now_ms: int) -> dict[str, int]:
        """Return `fenced` with one more attempt, without those that are at least a week older."""
        young = {key: at_ms for key, at_ms in self.fenced.items() if now_ms - at_ms < _KEPT_MS}
        return {**young, name: now_ms}


def _publication(mark: Mapping[str, Any]) -> Publication:
    return Publication(
        version=_counted("the version of a mark", mark["version"]),
        manifest_ref=canonical_url(mark["manifest_ref"]),
        rows=_counted("the number of rows of a mark", mark["rows"]),
        bytes=_counted("the size of a mark", mark["bytes"]),
        at_ms=whole(mark["at_ms"]),
    )


def _counted(name: str, value: object) -> int:
    try:
        return count(value)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None


def _digest(text: object) -> str | None:
    if text is not None and not (isinstance(text, str) and _SHA256.fullmatch(text)):
        raise ValueError(f"the SHA-256 of a manifest is {short(text)}, and not 64 hexadecimal digits")
    return text


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


def stamp(moment: datetime) -> str:
    """Return a moment in the format of snapshots: ISO 8601 in UTC, with microseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def manifest_key(run_id: str, created: datetime) -> str:
    """Return the key of a run's manifest."""
    return f"manifests/{stamp(created)}_run_id={run_id}/manifest"
