"""The data files of an ended attempt: exactly those that bear its prefix and that no version refers to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from safewriter.objects.store import StoreError, batches
from safewriter.tables.delta.listing import keys_without

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.objects.store import ObjectStore
    from safewriter.tables.delta.commit import Commit

__all__ = ["remove_files", "root_of_other_table"]

_OTHER_TABLE: Final = re.compile(r"(.+/)(?:_delta_log/.*|metadata/[^/]+\.metadata\.json)")


def remove_files(
    store: ObjectStore, prefixes: tuple[str, ...], commits: tuple[Commit, ...], may_go_on: Callable[[], bool]
) -> int:
    """Delete the table's data files that have one of the prefixes and are in no commit; return their number.

    `commits` are all versions since the first of the attempts began: no other can refer to their files. Unfinished
    multipart uploads of such files are aborted. Raises `StoreError` if the work could not be finished, also when
    `may_go_on` says no.
    """
    referred = set().union(*(commit.paths for commit in commits))
    ours, others, removed = [], set(), 0

    def check_time() -> None:
        if not may_go_on():
            raise StoreError(f"{store.uri('')}: out of time while cleaning up, {removed} files removed so far")

    for key in keys_without(store, prefixes):
        check_time()
        if (root := root_of_other_table(key)) is not None:
            others.add(root)
        elif _is_data_file(key, prefixes) and key not in referred:
            ours.append(key)
    # A block's session gives its prefix also to files that the script writes to a table inside this one.
    elsewhere = tuple(others)
    for batch in batches([key for key in ours if not key.startswith(elsewhere)]):
        check_time()
        store.delete_all(batch)
        removed += len(batch)
    for upload in store.uploads(""):
        if _is_data_file(upload.key, prefixes) and not upload.key.startswith(elsewhere):
            store.abort(upload)
    return removed


def root_of_other_table(key: str) -> str | None:
    """Return the folder of another table, Delta or Iceberg, inside this one, if the key shows such a table."""
    found = _OTHER_TABLE.fullmatch(key)
    return None if found is None else found[1]


def _is_data_file(key: str, prefixes: tuple[str, ...]) -> bool:
    return not key.startswith("_delta_log/") and key.rpartition("/")[2].startswith(prefixes)
