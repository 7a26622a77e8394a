"""Writes of a script to the function's own disk, which is emptied after the job. Spark refuses them.

Such a write names a path without a bucket, or a table of Spark's own catalog, whose folder is on that disk.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from soal.doctor.script_tree import UNKNOWN, Line, calls, chain, fail, line_of, name_of, text_of, texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from soal.doctor.script_tree import Node

_WRITERS: Final = frozenset({"write", "writeStream"})
_BY_WRITER: Final = frozenset({"csv", "json", "orc", "parquet", "save", "start", "text", "xml"})
"""Methods of a writer that take a path."""
_BY_NAME: Final = re.compile(r"saveAs(?:NewAPIHadoop|Hadoop|Pickle|Sequence|Text)File")
_TABLES: Final = frozenset({"insertInto", "saveAsTable", "toTable", "writeTo"})
_PLACING: Final = frozenset({"createExternalTable", "createTable", "saveAsTable", "toTable"})
_STATES: Final = frozenset({"checkpointlocation", "spark.sql.streaming.checkpointlocation"})
_STEPS_MAX: Final = 50
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
# The words before a name are taken for good (`?+`): before a name that is known only at run time, none of them is one.
_NAME: Final = rf"(?P<name>[\w.`]+)(?![\w.`/:{UNKNOWN}-])"
_CREATE: Final = re.compile(
    rf"(?i)\s*(?:create(?:\s+or\s+replace)?|replace)(?:\s+external)?\s+table\s+(?:if\s+not\s+exists\s+)?+{_NAME}"
)
_INSERT: Final = re.compile(rf"(?i)\s*insert\s+(?:into|overwrite)\s+(?:table\s+)?+(?!(?:local\s+)?directory\b){_NAME}")
_PLACE: Final = re.compile(r"(?i)\b(?:location|directory|path)\s*+(?:=\s*+)?['\"](?P<path>[^'\"]+)")
_BY_PATH: Final = re.compile(
    r"(?i)\b(?:table|into|overwrite|exists)\s+(?:csv|delta|json|orc|parquet|text)\.`(?P<path>[^`]+)"
)

_CHANGES: Final = re.compile(r"(?i)\s*(?:create|insert|merge|replace)\b")
_CATALOG: Final = re.compile(r"spark\.sql\.catalog\.(\w+)")
_CHOOSES: Final = re.compile(r"(?i)spark\.sql\.defaultCatalog|(?:spark\.hadoop\.)?fs\.defaultFS|\s*use\s")
_CHOOSE: Final = frozenset({"setCurrentCatalog"})
_EMPTIED: Final = (
    "the function's own disk, which is emptied after the job: Spark refuses it, since the rows would be gone"
)
_PATH_REMEDY: Final = "write to an s3a:// path; what only the job needs may lie below tempfile.gettempdir()"
_TABLE_REMEDY: Final = (
    "save to an s3a:// path, or give the table one (option('path', 's3a://…'), LOCATION), or use a table of an Iceberg"
    " catalog (catalog.database.table)"
)


@dataclass(frozen=True, slots=True)
class _Names:
    """The script's names. `known` tables have their own location; `catalogs` are the catalogs besides Spark's own."""

    texts: Mapping[str, ast.expr]
    writers: AbstractSet[str]
    known: AbstractSet[str]
    catalogs: AbstractSet[str]
    chooses_catalog: bool

    def beginning(self, node: ast.expr | None) -> str:
        """Return the text with which an expression begins, as far as the script determines it."""
        for _ in range(_STEPS_MAX):
            if isinstance(node, ast.JoinedStr) and node.values:
                node = node.values[0]
            elif isinstance(node, ast.BinOp):
                node = node.left
            elif isinstance(node, ast.FormattedValue):
                node = node.value
            elif isinstance(node, ast.Name) and node.id in self.texts:
                node = self.texts[node.id]
            else:
                break
        return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""

    def whole(self, node: ast.expr) -> str:
        """Return an expression's text; an empty string if the script determines only a part of it."""
        text = self.texts.get(node.id) if isinstance(node, ast.Name) else node
        return self.beginning(text) if isinstance(text, ast.Constant) else ""

    def is_own(self, table: str) -> bool:
        """Return whether a table is in Spark's own catalog without its own location, judged by the script alone."""
        parts = [part for part in table.replace("`", "").split(".") if part]
        if not parts or "/" in table or self.chooses_catalog or parts[-1].lower() in self.known:
            return False
        is_short = len(parts) < 3  # noqa: PLR2004 - a catalog, a database, a table
        return parts[0] == "spark_catalog" or (is_short and parts[0] not in self.catalogs)


def sinks_of(nodes: Sequence[Node]) -> Iterator[Line]:
    """Yield a line for each write that certainly goes to the function's own disk."""
    names = _names(nodes)
    for call in calls(nodes):
        if _is_local(path := names.beginning(_path(call, names))):
            yield fail(line_of(call), f"writes {path} on {_EMPTIED}", _PATH_REMEDY)
        elif names.is_own(table := _table_of(call, names)):
            yield _table(line_of(call), table)
    for number, text in texts(nodes):
        yield from _in_sql(number, text, names)


def _table_of(call: ast.Call, names: _Names) -> str:
    """Return the table to which a call writes by name; an empty string for any other call."""
    is_sink = name_of(call.func) in _TABLES and bool(call.args) and not _has_place(call)
    return names.whole(call.args[0]) if is_sink else ""


def _table(number: int, name: str) -> Line:
    return fail(number, f"writes the table {name} of Spark's own catalog, on {_EMPTIED}", _TABLE_REMEDY)


def _path(call: ast.Call, names: _Names) -> ast.expr | None:
    """Return the path to which a call writes; None for any other call."""
    name, on_the_way = name_of(call.func), chain(call)
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    is_writer = not _WRITERS.isdisjoint(on_the_way) or not names.writers.isdisjoint(on_the_way)
    if name in ("option", "options", "config", "set"):
        key = text_of(call.args[0]).lower() if len(call.args) > 1 else ""
        keywords |= {key: call.args[1]} if key else {}
        place = next((keywords[name] for name in keywords if name and name.lower() in _STATES), None)
        return place or (keywords.get("path") if is_writer else None)
    is_sink = (name in _BY_WRITER and is_writer) or (name == "location" and "DeltaTable" in on_the_way)
    if not (is_sink or _BY_NAME.fullmatch(name)) or _is_iceberg(call):
        return None
    return keywords.get("path") or (call.args[0] if call.args else None)


def _is_iceberg(call: ast.Call) -> bool:
    """Return whether the call's path is the name of an Iceberg table."""
    return any(text_of(node).lower() == "iceberg" for node in ast.walk(call) if isinstance(node, ast.Constant))


def _has_place(call: ast.Call) -> bool:
    """Return whether the call gives the table a path; that path is judged separately."""
    inner = (node for node in ast.walk(call) if isinstance(node, ast.Call))
    return any(
        (name_of(node.func) == "option" and bool(node.args) and text_of(node.args[0]).lower() == "path")
        or any(keyword.arg == "path" for keyword in node.keywords)
        for node in inner
    )


def _places(call: ast.Call) -> bool:
    return name_of(call.func) in _PLACING and bool(call.args) and _has_place(call)


def _in_sql(number: int, text: str, names: _Names) -> Iterator[Line]:
    place = _PLACE.search(text) or _BY_PATH.search(text)
    if place is not None and _CHANGES.match(text) and _is_local(place["path"]):
        yield fail(number, f"writes {place['path']} on {_EMPTIED}", _PATH_REMEDY)
    match = _INSERT.match(text) or (_CREATE.match(text) if place is None else None)
    if match is not None and names.is_own(match["name"]):
        yield _table(number, match["name"])


def _is_local(path: str) -> bool:
    scheme = _SCHEME.match(path)
    return bool(path) and not path.startswith(UNKNOWN) and (scheme is None or scheme[1].lower() == "file")


def _names(nodes: Sequence[Node]) -> _Names:
    values: dict[str, list[ast.expr]] = {}
    for node in (entry.node for entry in nodes):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in (target for target in targets if isinstance(target, ast.Name)):
                values.setdefault(target.id, []).append(node.value)
    strings = [text for _, text in texts(nodes)]
    placed = [match["name"] for text in strings if _PLACE.search(text) and (match := _CREATE.match(text))]
    placed += [text_of(call.args[0]) for call in calls(nodes) if _places(call)]
    return _Names(
        texts={name: nodes_of_name[0] for name, nodes_of_name in values.items() if len(nodes_of_name) == 1},
        writers={name for name, nodes_of_name in values.items() if any(map(_is_writer, nodes_of_name))},
        known={name.replace("`", "").rpartition(".")[2].lower() for name in placed},
        catalogs={match[1] for text in strings for match in _CATALOG.finditer(text)} - {"spark_catalog"},
        chooses_catalog=any(map(_CHOOSES.match, strings))
        or any(name_of(call.func) in _CHOOSE for call in calls(nodes)),
    )


def _is_writer(node: ast.expr) -> bool:
    call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
    return not _WRITERS.isdisjoint(chain(call))
