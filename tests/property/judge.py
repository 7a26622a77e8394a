"""What must be true of a table after any history, read from its log, its folder and the checkpoint bucket alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from safewriter.state import NO_CHANGE, OPEN

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from tests.property.operations import Operation
    from tests.support.lake import Lake

__all__ = ["check_verdicts", "ids_after", "retained_files"]


def ids_after(lake: Lake, base: Counter[int], writes: Mapping[str, Operation]) -> Counter[int]:
    """Replay the log: a commit of `writes`, by application id, does what its operation does, a revert takes it back."""
    now = base
    done: dict[int, tuple[Counter[int], Counter[int]]] = {}
    for version, commit in enumerate(lake.commits()):
        info: dict[str, Any] = next((action["commitInfo"] for action in commit if "commitInfo" in action), {})
        if info["operation"] == "SAFEWRITER REVERT":
            gone, come = done[json.loads(info["userMetadata"])["safewriter"]["reverts"]]
            assert come <= now, "an undo takes rows that others have changed"
            now = now - come + gone
        elif info["operation"] != "SAFEWRITER FENCE":
            for action in commit:
                if (operation := writes.get(action.get("txn", {}).get("appId", ""))) is not None:
                    after = operation.effect(now)
                    done[version] = (now - after, after - now)
                    now = after
    return now


def check_verdicts(lake: Lake) -> None:
    """A document that says committed has one live commit, one that says rolled_back none."""
    for document in lake.documents():
        if document.status not in OPEN and not str(document.reason).startswith(NO_CHANGE):
            live = lake.live_versions(document.write_key)
            assert len(live) == (1 if document.status == "committed" else 0), (document, live)


def retained_files(spark: SparkSession, lake: Lake, since: int) -> set[str]:
    """Return the keys of all files that a version from `since` on refers to."""
    live: dict[str, str | None] = {}
    needed: set[str] = set()
    for version, commit in enumerate(lake.commits()):
        changed = set()
        for action in commit:
            if "remove" in action:
                live.pop(unquote(action["remove"]["path"]), None)
            elif "cdc" in action:
                changed.add(unquote(action["cdc"]["path"]))
        for action in commit:
            if "add" in action:
                live[unquote(action["add"]["path"])] = _vector(spark, lake, action)
        if version >= since:
            needed |= live.keys() | {vector for vector in live.values() if vector is not None}
        if version > since:
            needed |= changed
    return needed


def _vector(spark: SparkSession, lake: Lake, action: dict[str, Any]) -> str | None:
    """Ask Delta itself where a deletion vector lies."""
    if action["add"].get("deletionVector", {}).get("storageType") != "u":
        return None
    jvm: Any = spark._jvm
    add = jvm.org.apache.spark.sql.delta.actions.Action.fromJson(json.dumps(action))
    path = add.deletionVector().absolutePath(jvm.org.apache.hadoop.fs.Path(lake.table))
    return str(path.toString()).removeprefix(f"{lake.table}/")
