"""The data files of an ended attempt: exactly those that bear its prefix and that no version refers to."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.objects.store import ObjectStore
    from safewriter.tables.delta.commit import Commit

__all__ = ["remove_files"]


def remove_files(
    store: ObjectStore, prefixes: tuple[str, ...], commits: tuple[Commit, ...], may_go_on: Callable[[], bool]
) -> int:
    """Delete the table's data files that bear one of the prefixes and stand in no commit; return how many went.

    `commits` are all versions since the first of the attempts began: no other can refer to their files. Unfinished
    multipart uploads of such files are aborted. Raises `StoreError` if the work could not be finished, also when
    `may_go_on` says no.
    """
    referred = set().union(*(commit.paths for commit in commits))
    removed = 0
    for listed in store.list(""):
        if not may_go_on():
            raise StoreError(f"{store.uri('')}: out of time while cleaning up, {removed} files removed so far")
        if _is_data_file(listed.key, prefixes) and listed.key not in referred:
            store.delete(listed.key)
            removed += 1
    for upload in store.uploads(""):
        if _is_data_file(upload.key, prefixes):
            store.abort(upload)
    return removed


def _is_data_file(key: str, prefixes: tuple[str, ...]) -> bool:
    return not key.startswith("_delta_log/") and PurePosixPath(key).name.startswith(prefixes)
