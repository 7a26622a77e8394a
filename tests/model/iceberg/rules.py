"""The protocol's additional rules for Iceberg, each of which a search can switch off."""

from __future__ import annotations

from enum import Enum

__all__ = ["IcebergRule"]


class IcebergRule(Enum):
    """The rules for Iceberg: each value is the rule's text; the comments name the code that implements it."""

    # -- the block, in StagedTable.java, Publication.java and session.py
    BASE_FIRST = "a table without a snapshot gets an empty one before the write is claimed"
    PUBLISH_MAIN = "publishing requires main as it was read"
    PUBLISH_UNFENCED = "publishing requires that there is no fence of its attempt"
    PUBLISH_MARK = "the commit that publishes leaves a mark of its attempt, which outlives the snapshot"
    PUBLISH_ONCE = "an attempt that finds its own mark applies nothing again"
    PUBLISH_IN_TIME = "a publication is announced first, and then begins before the lead time or not at all"
    AGAIN_ALONE = "on a table that has moved one statement alone is applied again"
    # -- settling, in table.py
    FENCE_FIRST = "the attempt is fenced before rolled_back is said, unless nothing was ever sent"
    LOOK_AGAIN = "the verdict is read from the table behind the fence"
    OWN_FENCE = "fence and mark are the attempt's, not the write's"
    SECOND_WITNESS = "a publication without its mark is known by the summary of its snapshot"
    FENCE_OUTLIVES = "a fence lives a day longer than its attempt may publish"
    MARK_AGE = "an attempt that is older than marks are kept is not judged without its mark, fenced or not"
    GONE_UNDECIDED = "a table that is gone is not judged"
