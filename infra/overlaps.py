"""Places that two settings name, so that a job would have a right there that one of them denies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.config import Config
    from infra.places import BucketPrefix

__all__ = ["overlaps"]


def overlaps(config: Config) -> Iterator[tuple[str, BucketPrefix, str]]:
    """Yield the key, the value found there, and the remedy."""
    for place in config.data:
        there = f"jobs write there (data={place})"
        if config.s3_trigger is not None and _overlap(config.s3_trigger, place):
            remedy = f"{there}, and would start themselves; keep what they read apart from what they write"
            yield "s3_trigger", config.s3_trigger, remedy
        if config.scripts is not None and _overlap(config.scripts, place):
            remedy = f"{there}, and one could replace the script of the next; keep scripts apart from data"
            yield "scripts", config.scripts, remedy
        for read in config.read_only_data:
            # The reverse is intended: tables inside of a read-only place, data=lake/tables, read_only_data=lake.
            if read.is_below(place):
                yield "read_only_data", read, f"{there}; take it out of data"
    yield from _own(config)


def _own(config: Config) -> Iterator[tuple[str, BucketPrefix, str]]:
    """Refuse the stack's own buckets, by CloudFormation's names. Scripts may be in one that an old stack has left."""
    checkpoints, scripts = (
        re.compile(rf"{re.escape(config.stack_name.lower())}-{kind}bucket[0-9a-f]{{8}}-.+")
        for kind in ("checkpoints", "scripts")
    )
    named = {
        "data": config.data,
        "read_only_data": config.read_only_data,
        "s3_trigger": () if config.s3_trigger is None else (config.s3_trigger,),
        "scripts": () if config.scripts is None else (config.scripts,),
    }
    for key, places in named.items():
        for place in places:
            if checkpoints.fullmatch(place.bucket) or (key != "scripts" and scripts.fullmatch(place.bucket)):
                yield key, place, "is a bucket of the stack's own, in which the roles may do just what they need to"


def _overlap(one: BucketPrefix, other: BucketPrefix) -> bool:
    return one.is_below(other) or other.is_below(one)
