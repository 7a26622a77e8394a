"""The data sources that a script names: in calls of Spark's readers and writers, and in SQL."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from soal.doctor.script_tree import calls, line_of, name_of, text_of, texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from soal.doctor.script_tree import Node

__all__ = ["DATABASE", "named_formats"]

DATABASE: Final = re.compile(r"jdbc:\w+")
"""The beginning of a database's address."""
_MAKERS: Final = frozenset({"catalog", "read", "readStream", "write", "writeStream"})
"""The attributes that are a reader or a writer; the catalog creates tables of a format, too."""
_STEPS: Final = frozenset(
    {"bucketBy", "clusterBy", "foreach", "foreachBatch", "format", "mode", "option", "options", "outputMode"}
    | {"partitionBy", "partitionedBy", "queryName", "schema", "sortBy", "tableProperty", "trigger", "using"}
)
"""Their methods that return themselves."""
_CLASSES: Final = frozenset(
    {"DataFrameReader", "DataFrameWriter", "DataFrameWriterV2", "DataStreamReader", "DataStreamWriter"}
)
_ARGUMENTS: Final = {
    "createExternalTable": (2, "source"),
    "createTable": (2, "source"),
    "format": (0, "source"),
    "load": (1, "format"),
    "save": (1, "format"),
    "saveAsTable": (1, "format"),
    "start": (1, "format"),
    "toTable": (1, "format"),
    "using": (0, "provider"),
}
"""The methods that take a format: its position among the arguments, and its name."""
_USING: Final = re.compile(r"(?i)\busing\s+`?([\w.]+)")
_STATEMENT: Final = re.compile(
    r"(?i)\b(?:create(?:\s+(?:or|replace|global|temp|temporary|external))*\s+(?:table|view)|replace\s+table"
    r"|insert\s+overwrite(?:\s+local)?\s+directory)\b"
)
"""The beginnings of the statements in which USING names a format: a join or a merge has the word, too."""


def named_formats(nodes: Sequence[Node]) -> Iterator[tuple[int, str]]:
    """Yield line and name of each format."""
    kept = _kept(nodes)
    for call in calls(nodes):
        if (text := _argument(call, kept)) is not None:
            yield line_of(call), text
    for number, text in texts(nodes):
        for match in _USING.finditer(text):
            if _STATEMENT.search(text, 0, match.start()):
                yield number, match[1]


def _argument(call: ast.Call, kept: AbstractSet[str]) -> str | None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _ARGUMENTS:
        return None
    position, name = _ARGUMENTS[call.func.attr]
    given = [keyword.value for keyword in call.keywords if keyword.arg == name] or call.args[position : position + 1]
    return text_of(given[0]) if given and _is_reader(call.func.value, kept) else None


def _kept(nodes: Sequence[Node]) -> AbstractSet[str]:
    """Return the names of the variables and attributes that hold a reader or a writer."""
    kept: set[str] = set()
    for node in (found.node for found in nodes):
        if isinstance(node, ast.Assign) and _is_reader(node.value, kept):
            kept.update(name_of(target) for target in node.targets)
        elif isinstance(node, ast.NamedExpr) and _is_reader(node.value, kept):
            kept.add(node.target.id)
        elif isinstance(node, ast.AnnAssign):
            if _is_class(node.annotation) or (node.value is not None and _is_reader(node.value, kept)):
                kept.add(name_of(node.target))
        elif isinstance(node, ast.arg) and node.annotation is not None and _is_class(node.annotation):
            kept.add(node.arg)
    return kept - {""}


def _is_class(annotation: ast.expr) -> bool:
    return (name_of(annotation) or text_of(annotation)) in _CLASSES


def _is_reader(node: ast.expr, kept: AbstractSet[str]) -> bool:
    """Tell whether an expression is a reader or writer: `"{}".format("avro")` is a text."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "writeTo":
            return True
        if node.func.attr not in _STEPS:
            return False
        node = node.func.value
    return name_of(node) in kept or (isinstance(node, ast.Attribute) and node.attr in _MAKERS)
