"""What the protocol adds for Iceberg, by name, so that each rule can be taken away."""

from __future__ import annotations

from enum import Enum

__all__ = ["IcebergRule"]


class IcebergRule(Enum):
    """One rule each; the value says it, and where it lives."""

    # -- staging, in session.py
    OWN_BRANCH = "each attempt stages on a branch of its own"
    # -- picking and publishing, in table.py and publishing.py
    PICK_FIRST = "the document names a snapshot before it is published"
    PICKED_ONLY = "of a branch only the picked snapshot is published"
    PICK_BINDS = "what is picked is published by whoever comes, also by one that would have dropped it"
    OURS_BY_ID = "a picked snapshot is known in main by its id"
    OURS_BY_MARK = "a snapshot of the write is known in main by its mark"
    MARK_EPOCH = "a settler knows marks of the epoch that it has read, or earlier ones"
    PUBLISH_MAIN = "publishing requires main as it was read"
    PUBLISH_BRANCH = "publishing requires the branch as it was read"
    PUBLISH_TAKES_BRANCH = "publishing takes the branch away"
    CONFLICT_TAKES_BRANCH = "a conflict takes the branch away before the verdict"
    AGAIN_ONLY_APPENDS = "only what appends is applied again to a main that has moved"
    AGAIN_WHOLE = "what is staged is applied again only if all of it is still known"
    WHOLE_HISTORY = "what main's history does not show down to the claim is not judged"
    # -- what goes into main by itself, in table.py
    BACK_ANNOUNCED = "rolling_back is written before main is set back"
    BACK_NEWEST = "main is set back only while its newest snapshots are the write's"
    BACK_MAIN = "setting main back requires it as it was read"
    EARLIER_COUNTS = "success() counts what an earlier attempt has brought into main after its verdict"
    # -- clean-up, in leftovers.py
    CLEAN_UNLED = "no snapshot is deleted to which a reference leads"
    CLEAN_REPEATED = "no snapshot is deleted whose files one in main repeats"
    CLEAN_COMMITTED = "what a committed write has published is not deleted, also if main was set back since"
    CLEAN_EARLIER = "what earlier attempts have left goes with a later clean-up"
