"""The invariants of a table's folder after any history: every needed file exists, and no file of the dead stays."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from safewriter.identity import canonical_table
from soal.orphans.protection import Attempts
from soal.orphans.survey import Survey, delete

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.property.judge import Log
    from tests.support.lake import Lake

__all__ = ["check_folder"]


def check_folder(spark: SparkSession, log: Log, since: int, living: set[str], excused: set[str]) -> None:
    """Check the files before and after `soal orphans`. Versions before `since` may have lost theirs; `living` are the
    files and the upload of a live attempt.

    Recovery leaves only files that the log names, that bear no mark, or that are `excused`.
    """
    lake = log.lake
    needed, named = _retained_files(spark, log, since)
    assert (needed | living) - _files(lake) == set(), "something is gone that is needed"
    left = _files(lake) - named - living - excused
    assert {key for key in left if not key.startswith("deletion_vector_")} == set(), "recovery has not cleaned up"

    table, store = canonical_table(lake.table), lake.store
    attempts = Attempts(lake.checkpoints.store, table)
    found = Survey(store, table, timedelta(hours=1), attempts, lambda _: None).look()
    report, problem = delete(store, *found, lambda _: None)
    assert (problem, report.has_failed) == (None, False)
    held = {one.key for one in report.orphans if one.held}
    assert needed | living | held <= _files(lake) <= named | living | held
    assert held <= living | left  # younger files of the dead look like those of the live attempt
    assert living or not held


def _files(lake: Lake) -> set[str]:
    """Return the keys of all files outside of the log, and of all unfinished uploads."""
    keys = {*lake.keys(), *(upload.key for upload in lake.store.uploads(""))}
    return {key for key in keys if not key.startswith("_delta_log/") and not key.endswith("/")}


def _retained_files(spark: SparkSession, log: Log, since: int) -> tuple[set[str], set[str]]:
    """Return the keys of all files that a version from `since` on needs, and of all that the log names."""
    live: dict[str, str | None] = {}
    needed: set[str] = set()
    named: set[str] = set()
    for version, commit in enumerate(log.commits()):
        changed = set()
        for action in commit:
            if "remove" in action:
                live.pop(unquote(action["remove"]["path"]), None)
            elif "cdc" in action:
                changed.add(unquote(action["cdc"]["path"]))
        for action in commit:
            if "add" in action:
                live[unquote(action["add"]["path"])] = _vector(spark, log.lake, action)
        present = live.keys() | {vector for vector in live.values() if vector is not None}
        named |= present | changed
        if version >= since:
            needed |= present
        if version > since:
            needed |= changed
    return needed, named


def _vector(spark: SparkSession, lake: Lake, action: dict[str, Any]) -> str | None:
    """Return where a deletion vector is, as Delta itself reports."""
    if (action["add"].get("deletionVector") or {}).get("storageType") != "u":
        return None
    jvm: Any = spark._jvm
    add = jvm.org.apache.spark.sql.delta.actions.Action.fromJson(json.dumps(action))
    path = add.deletionVector().absolutePath(jvm.org.apache.hadoop.fs.Path(lake.table))
    return str(path.toString()).removeprefix(f"{lake.table}/")
