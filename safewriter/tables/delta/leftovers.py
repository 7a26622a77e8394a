"""The data files of an ended attempt: exactly those that bear its prefix and that no version refers to."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from safewriter.bounds import space_of
from safewriter.objects.store import StoreError, batches, paced
from safewriter.tables.delta.listing import list_skipping

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from datetime import datetime

    from safewriter.objects.store import ListedObject, ObjectStore
    from safewriter.tables.delta.commit import Commit

__all__ = ["remove_files", "table_of"]

# The outermost folder counts: Hudi keeps a table of its own within `.hoodie/`. A key may hold line ends. A manifest
# tells of a table, too: the listing jumps over the rest of its folder.
_TABLE: Final = re.compile(
    r"((?:.*?/)??)(?:(?P<delta>_delta_log/.*)|(?P<hudi>\.hoodie/.*)|(?P<paimon>schema/schema-[0-9]+)"
    r"|(?P<iceberg>(?:metadata/|\A)[^/]+\.metadata\.json(?:\.gz)?|metadata/[^/]+\.avro))",
    re.DOTALL,
)
_NAMES_MAX_BYTES: Final = 16 << 20
"""The most memory for names of files that are held at a time: about 100,000 names."""
_EACH_BYTES: Final = 64
"""What Python takes for a name besides its characters."""
_TABLES_MAX: Final = 10_000
"""The most folders of other tables that are held."""


def remove_files(
    store: ObjectStore,
    prefixes: tuple[str, ...],
    commits: tuple[Commit, ...],
    more: Callable[[datetime, Collection[str]], tuple[Commit, ...]],
    may_go_on: Callable[[], bool],
) -> int:
    """Delete the table's data files that have one of the prefixes and are in no commit; return their number.

    `commits` are all versions since the first of the attempts began, as its document says. `more` gets the moment when
    the store received the oldest of the files, and their prefixes; it makes sure that no attempt with such a prefix can
    commit any more, and returns the versions beside `commits` that the store may have received since that moment: no
    older one can refer to the files, whatever the document says. A file stays if a path in these versions has its name,
    in any folder: a task draws a new name for each file. Unfinished multipart uploads of such files are aborted. Raises
    `StoreError` if the work was not finished, also when `may_go_on` returned False.
    """
    referred = _names(commits, prefixes)
    oldest: datetime | None = None
    removed = 0

    def check_time() -> None:
        if not may_go_on():
            raise StoreError(f"{store.uri('')}: out of time while cleaning up, {removed} files removed so far")

    left = partial(_left, store, prefixes, referred, check_time)
    # A block's session gives its prefix also to files that the script writes to a table inside this one. That table's
    # log may be listed after them, so nothing is deleted before everything is listed.
    others: set[str] = set()
    keys, space = [], 0
    found: set[str] = set()
    for entry in left(others):
        found.update(prefix for prefix in prefixes if _name_of(entry.key).startswith(prefix))
        oldest = entry.last_modified if oldest is None else min(oldest, entry.last_modified)
        if (space := space + _EACH_BYTES + space_of(entry.key)) <= _NAMES_MAX_BYTES:
            keys.append(entry.key)
    if oldest is not None:
        referred |= _names(more(oldest, found), prefixes)
    elsewhere = tuple(others)
    rest = (
        keys
        if space <= _NAMES_MAX_BYTES
        else (entry.key for entry in left(others) if _is_data_file(entry.key, tuple(found)))
    )
    for batch in batches(key for key in rest if not key.startswith(elsewhere) and _name_of(key) not in referred):
        check_time()
        store.delete_all(batch)
        removed += len(batch)
    for upload in paced(store.uploads(""), check_time):
        if _is_data_file(upload.key, prefixes) and not upload.key.startswith(elsewhere):
            check_time()
            store.abort(upload)
    return removed


def _left(
    store: ObjectStore,
    prefixes: tuple[str, ...],
    referred: Collection[str],
    check_time: Callable[[], None],
    others: set[str],
) -> Iterator[ListedObject]:
    """Yield the attempts' files that no commit refers to, and put the folders of other tables into `others`."""
    for entry in list_skipping(store, prefixes):
        check_time()
        if (table := table_of(entry.key)) is not None and table[0]:
            others.add(table[0])
            if len(others) > _TABLES_MAX:
                raise StoreError(f"{store.uri('')} has more than {_TABLES_MAX:,} tables in it; its files are left")
        elif _is_data_file(entry.key, prefixes) and _name_of(entry.key) not in referred:
            yield entry


def _names(commits: tuple[Commit, ...], prefixes: tuple[str, ...]) -> set[str]:
    return {name for commit in commits for name in commit.names if name.startswith(prefixes)}


def table_of(key: str) -> tuple[str, str] | None:
    """Return the folder and format (`delta`, `hudi`, `iceberg`, `paimon`) of the table of whose metadata a key is.

    The folder is "" or ends with a slash. None: the key is no metadata.
    """
    match = _TABLE.fullmatch(key)
    return None if match is None or match.lastgroup is None else (match[1], match.lastgroup)


def _is_data_file(key: str, prefixes: tuple[str, ...]) -> bool:
    return not key.startswith("_delta_log/") and _name_of(key).startswith(prefixes)


def _name_of(key: str) -> str:
    return key.rpartition("/")[2]
