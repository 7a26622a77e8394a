"""List a table's folder, and jump over the files that nobody looks for: thousands of them cost one request.

S3 lists keys in their order, a thousand at a time, from any key on. So after a full page the next one may begin behind
the files whose names begin as the last one's does.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.objects.store import ObjectStore

__all__ = ["PAGE", "keys_without"]

PAGE: Final = 1000
"""The most keys that S3 lists at once."""
# The log, and the metadata that Iceberg keeps beside its own table or, with UniForm, beside this one.
_FOLDERS: Final = re.compile(r"((?:.+/)?(?:_delta_log|metadata(?=/[^/]+\.(?:metadata\.json|avro)$)))/")
# Names that Spark, Delta and SafeWriter give to data files, by how they begin: with a decimal number behind it, or a
# hexadecimal one. A folder of a partition is called otherwise: an equals sign stands in its name.
_FILES: Final = re.compile(r"((?:.*/)?(?:(?:part-|cdc-)(?P<number>[0-9])|(?:deletion_vector_|sw-)[0-9a-f]))[^/=]*")
_BEHIND_NUMBER: Final = ":"
_BEHIND_HEX: Final = "g"


def keys_without(store: ObjectStore, prefixes: tuple[str, ...]) -> Iterator[str]:
    """Yield the keys below a table, in their order, except for long runs of files and logs that have no such prefix.

    Nothing is left out whose name begins with one of `prefixes`, except in a folder whose own name stands among such a
    run: that of a partition column `part-0` or `sw-a`. The number of requests is never greater than that of a whole
    listing.
    """
    after = ""
    while True:
        page = [entry.key for entry in islice(store.list("", start_after=after), PAGE)]
        yield from page
        if len(page) < PAGE:
            return
        after = _next_start(page[-1], prefixes)


def _next_start(last: str, prefixes: tuple[str, ...]) -> str:
    """Return the key behind which the next page begins."""
    if (folder := _FOLDERS.match(last)) is not None:
        return f"{folder[1]}0"  # the character behind the slash
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
