"""The bytes of a snapshot prefix's `_CURRENT`: pointer, history of publications, fences; damaged ones are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from safewriter.snapshots.errors import ManifestParseError, ManifestPublishError
from safewriter.snapshots.format.current import CONTENT_TYPE, Current, Past, Publication, manifest_key, stamp

CURRENT = Current(manifest_ref="s3://lake/m", run_id="r", updated_at="2026-11-22T00:00:00.000000Z")
MOMENT = datetime(2026, 11, 22, 1, 2, 3, 4, tzinfo=UTC)
DAY_MS = 86_400_000
UNCOUNTED = b'{"manifest_ref": "s3://lake/m", "run_id": "r", "updated_at": "t", "version": null}'


def test_current_says_where_the_manifest_is() -> None:
    """The body has the five members that other readers need."""
    told = json.loads(CURRENT.encode())
    assert {key: told[key] for key in ("manifest_ref", "manifest_content_type", "run_id", "updated_at")} == {
        "manifest_ref": "s3://lake/m",
        "manifest_content_type": CONTENT_TYPE,
        "run_id": "r",
        "updated_at": "2026-11-22T00:00:00.000000Z",
    }
    assert told["format_version"] == 1


def test_current_comes_back_as_it_was() -> None:
    """This holds with all optional fields, and before the first publication."""
    published = {"sw-1-1-a": Publication(7, "s3://lake/m", 10, 4096, 5)}
    full = replace(
        CURRENT,
        version=7,
        fencing_token=7,
        published=published,
        fenced={"sw-1-1-b": 5},
        history=(Past("s3://lake/m", stamp(MOMENT), "ab" * 32), Past("s3://lake/l", stamp(MOMENT))),
    )
    for one in (CURRENT, full, Current.absent(MOMENT)):
        assert Current.decode(one.encode(), "c") == one


@pytest.mark.parametrize("digest", [5, "ab", "AB" * 32, "ab" * 33])
def test_a_digest_is_64_hexadecimal_digits(digest: object) -> None:
    """Anything else is damage, and no manifest without a digest."""
    told = json.loads(replace(CURRENT, history=(Past("s3://lake/m", stamp(MOMENT), "ab" * 32),)).encode())
    told["history"][0]["sha256"] = digest
    with pytest.raises(ManifestParseError, match="64 hexadecimal digits"):
        Current.decode(json.dumps(told).encode(), "c")


def test_one_of_another_writer_has_five_members() -> None:
    """It counts as one publication, which is not in the history."""
    told = {key: json.loads(CURRENT.encode())[key] for key in ("manifest_ref", "run_id", "updated_at")}
    found = Current.decode(json.dumps(told).encode(), "c")
    assert (found.manifest_ref, found.version, found.published) == ("s3://lake/m", 1, {})


def test_no_two_bodies_are_equal() -> None:
    """Equal bodies would have equal ETags, and a compare-and-swap on an old one would succeed."""
    assert CURRENT.changed().encode() != CURRENT.encode()
    assert CURRENT.moved("s3://lake/m", "r", MOMENT).encode() != CURRENT.moved("s3://lake/m", "r", MOMENT).encode()


def test_a_publication_is_kept_for_a_week() -> None:
    """Older marks are removed."""
    old = replace(CURRENT, published={"old": Publication(1, "m", 1, 1, 0), "young": Publication(2, "m", 1, 1, DAY_MS)})
    found = old.with_publication("new", Publication(3, "m", 1, 1, 7 * DAY_MS))
    assert set(found) == {"young", "new"}


def test_a_fence_is_kept_for_a_week() -> None:
    """Older fences are removed."""
    assert set(replace(CURRENT, fenced={"old": 0, "young": 1}).with_fence("new", 7 * DAY_MS)) == {"young", "new"}


def test_the_last_hundred_publications_are_remembered() -> None:
    """The newest is the first; other changes are not in the history."""
    current = CURRENT
    for number in range(102):
        current = current.moved(f"s3://lake/{number}", "r", MOMENT).changed(fencing_token=number)
    assert [past.manifest_ref for past in current.history] == [f"s3://lake/{number}" for number in range(101, 1, -1)]
    assert current.history[0].at == "2026-11-22T01:02:03.000004Z"


def test_one_of_a_later_format_is_refused() -> None:
    """Its meaning is unknown."""
    with pytest.raises(ManifestParseError, match="format_version 2; this code knows 1"):
        Current.decode(CURRENT.encode().replace(b'format_version": 1', b'format_version": 2'), "c")


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"manifest_ref": "s3://lake/m"}', UNCOUNTED])
def test_a_damaged_current_is_refused(body: bytes) -> None:
    """It names no manifest."""
    with pytest.raises(ManifestParseError, match="does not say which snapshot is current"):
        Current.decode(body, "c")


def test_a_manifest_lies_at_the_moment_and_the_run() -> None:
    """The moment is in UTC, with microseconds."""
    for moment in (MOMENT, MOMENT.astimezone(timezone(timedelta(hours=5)))):
        assert manifest_key("r", moment) == "manifests/2026-11-22T01:02:03.000004Z_run_id=r/manifest"


@pytest.mark.parametrize("number", ["-1", str(2**64), "9" * 4300, "1.5", '"1"', "true"])
@pytest.mark.parametrize("name", ["version", "fencing_token"])
def test_what_counts_is_a_number_that_a_document_can_hold(name: str, number: str) -> None:
    """With another number, the build's checkpoint document would be unreadable."""
    told = '{"manifest_ref": null, "run_id": null, "updated_at": "t", "%s": %s}'
    with pytest.raises(ManifestParseError, match="c does not say which snapshot is current"):
        Current.decode((told % (name, number)).encode(), "c")


def test_nothing_is_written_that_nobody_could_read() -> None:
    """`encode` raises, so `_CURRENT` is not replaced."""
    with pytest.raises(ManifestPublishError, match="nobody could read _CURRENT any more"):
        replace(CURRENT, version=2**53).moved("s3://lake/m", "r", MOMENT).encode()
