"""List a table's folder, but jump over runs of files that the caller does not look for: one request for thousands.

S3 lists keys in order, up to a thousand at a time, from any key on. So after a full page the next one may begin after
all files whose names begin like the last one's, and the first pages are short.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from safewriter.objects.store import PAGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.objects.store import ListedObject, ObjectStore

__all__ = ["list_skipping"]

_FIRST: Final = 8
"""The most keys of the first page. A few show which run of files begins there, and to list a thousand takes a server,
and whoever parses them, a hundred times as long."""
_GROWTH: Final = 4
"""Each page may be so many times as long as the one before: a listing in which there is nothing to jump over soon has
full pages."""
# The log, and the metadata that Iceberg keeps beside its own table or, with UniForm, beside this one.
_FOLDERS: Final = re.compile(r"((?:.+/)?(?:_delta_log|metadata(?=/[^/]+\.(?:metadata\.json|avro)\Z)))/", re.DOTALL)
# How the names begin that Spark, Delta and SafeWriter give to data files; a decimal or hexadecimal number follows. The
# folder of a partition does not match: it has an equals sign in its name.
_FILES: Final = re.compile(
    r"((?:.*/)?(?:(?:part-|cdc-)(?P<number>[0-9])|(?:deletion_vector_|sw-)[0-9a-f]))[^/=]*", re.DOTALL
)
_BEHIND_NUMBER: Final = ":"
_BEHIND_HEX: Final = "g"


def list_skipping(store: ObjectStore, prefixes: tuple[str, ...]) -> Iterator[ListedObject]:
    """Yield the objects below a table in order, but skip long runs of logs, and of files that have none of `prefixes`.

    A file with such a prefix is skipped only in a folder whose own name falls into such a run: that of a partition
    column `part-0` or `sw-a`. It takes at most four requests more than a whole listing.
    """
    after, size = "", _FIRST
    while True:
        size = min(size, PAGE)
        page = [*islice(store.list("", start_after=after, at_once=size), size)]
        yield from page
        if len(page) < size:
            return
        after, size = _next_start(page[-1].key, prefixes), size * _GROWTH


def _next_start(last: str, prefixes: tuple[str, ...]) -> str:
    """Return the key after which the next page begins."""
    if (folder := _FOLDERS.match(last)) is not None:
        return f"{folder[1]}0"  # the character after the slash
    run = _FILES.fullmatch(last)
    if run is None:
        return last
    within, _, name = last.rpartition("/")
    within = f"{within}/" if within else ""
    if name.startswith(prefixes):
        return last
    ahead = min((prefix for prefix in prefixes if prefix > name), default=None)
    end = run[1][:-1] + (_BEHIND_HEX if run["number"] is None else _BEHIND_NUMBER)
    return end if ahead is None else min(end, f"{within}{ahead}")
