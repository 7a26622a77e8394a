"""The protocol's additional rules for Iceberg, each of which a search can switch off."""

from __future__ import annotations

from enum import Enum

__all__ = ["IcebergRule"]


class IcebergRule(Enum):
    """The rules for Iceberg: each value is the rule's text; the comments name the code that implements it."""

    # -- the block, in StagedTable.java, Publication.java and session.py
    BASE_FIRST = "a table without a snapshot gets an empty one before the claim"
    PUBLISH_MAIN = "publishing requires main as the block read it"
    PUBLISH_UNFENCED = "publishing requires that the attempt has no fence"
    PUBLISH_MARK = "the commit leaves a mark that outlives the snapshot"
    PUBLISH_ONCE = "an attempt that finds its mark applies nothing again"
    PUBLISH_IN_TIME = "the block announces a publication first, and begins it before the lead time or not at all"
    AGAIN_ALONE = "Iceberg applies only one statement alone again"
    # -- settling, in table.py
    FENCE_FIRST = "the settler fences before it says rolled_back, unless nothing was ever sent"
    LOOK_AGAIN = "the settler reads the verdict behind the fence"
    OWN_FENCE = "fence and mark are the attempt's, not the write's"
    SECOND_WITNESS = "a snapshot's summary also shows a publication"
    FENCE_OUTLIVES = "a fence lives a day longer than its attempt may publish"
    MARK_AGE = "without the mark, no settler judges an attempt that is older than marks are kept, fenced or not"
    GONE_UNDECIDED = "no settler judges a table that is gone"
