"""What a script uses that a variant of the image does not have: modules, functions, formats, classes in texts.

`missing` is the list of what the variant does not have (image/spark/missing.toml).
"""

from __future__ import annotations

import ast
import re
import sys
from typing import TYPE_CHECKING, Final

from soal.doctor.image_modules import modules_of
from soal.doctor.script_formats import DATABASE, named_formats
from soal.doctor.script_line import Line, fail, warn
from soal.doctor.script_tree import calls, line_of, name_of, text_of, texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from handler.spark.missing_dependencies import Missing, Variant
    from soal.doctor.script_tree import Node

__all__ = ["FUNCTIONS", "METHODS", "needs_of"]

_PANDAS: Final = "pandas"
_AVRO: Final = "avro"
_PROTOBUF: Final = "PROTOBUF_NOT_LOADED_SQL_FUNCTIONS_UNUSABLE"
_ROCKSDB: Final = "org.rocksdb."
METHODS: Final = frozenset(
    {"applyInArrow", "applyInPandas", "applyInPandasWithState", "mapInArrow", "mapInPandas", "pandas_api", "toArrow"}
    | {"toPandas", "transformWithState", "transformWithStateInPandas"}
)
"""PySpark's methods that import pandas or PyArrow when they are called."""
FUNCTIONS: Final = {
    "arrow_udf": _PANDAS,
    "arrow_udtf": _PANDAS,
    "pandas_udf": _PANDAS,
    "from_avro": _AVRO,
    "to_avro": _AVRO,
    "from_protobuf": _PROTOBUF,
    "to_protobuf": _PROTOBUF,
}
"""PySpark's functions that PySpark has everywhere, but which fail without this module, format, or Java code."""
_MODULES: Final = {"pyspark.sql.avro": _AVRO, "pyspark.sql.datasource": _PANDAS, "pyspark.sql.protobuf": _PROTOBUF}
"""The same of its modules."""
_IMPORTERS: Final = ("import_module", "__import__")
_AVRO_IN_SQL: Final = re.compile(r"(?i)\bavro\s*\.\s*`|\b(?:from_avro|to_avro|schema_of_avro)\s*\(")
_FOREIGN_FORMATS: Final = re.compile(r"hudi|redshift|bigquery|mongodb|.*snowflake.*")
_GLUE: Final = (
    "Glue's library is only in Glue: read and write with spark.read and DataFrame.write, and arguments with argparse"
    " (--key value is passed on as it is)"
)
_DRIVEN: Final = ("jdbc:postgresql", "jdbc:mysql")
"""The databases whose drivers some variant of the image has."""


def needs_of(nodes: Sequence[Node], missing: tuple[Missing, ...], variant: Variant) -> Iterator[Line]:
    """Yield a line for each thing that the variant does not have."""
    yield from _imports(nodes, missing, variant)
    yield from _names(nodes, missing)
    yield from _formats(nodes, missing)
    yield from _texts(nodes, missing)


def _row(missing: tuple[Missing, ...], key: str) -> Missing | None:
    """Return the entry that has this module, format, beginning of classes, or sign."""
    return next((row for row in missing if key in (*row.modules, *row.formats, *row.classes, *row.signs)), None)


def _row_of_format(missing: tuple[Missing, ...], name: str) -> Missing | None:
    return next((row for row in missing if name in row.formats), None)


def _lacks(number: int, detail: str, row: Missing) -> Line:
    return fail(number, detail, row.sentence, row.variants)


def _imports(nodes: Sequence[Node], missing: tuple[Missing, ...], variant: Variant) -> Iterator[Line]:
    there = modules_of(variant) | sys.stdlib_module_names
    for found in nodes:
        for number, whole, parts in _imported(found.node):
            names = [whole, *(f"{whole}.{part}" for part in parts)]
            rows = {name: row for name in names if (row := _row_of_module(missing, name)) is not None}
            lacking = [whole] if whole in rows else list(rows)
            told = [_lacks(number, f"imports {name}", rows[name]) for name in lacking]
            if not told and whole.partition(".")[0] not in there:
                told = [_foreign(number, whole)]
            yield from (_optional(line) for line in told) if found.is_optional else told


def _imported(node: ast.AST) -> Iterator[tuple[int, str, Sequence[str]]]:
    """Yield line and name of each module that a node imports, and the names from inside it."""
    if isinstance(node, ast.Import):
        yield from ((node.lineno, alias.name, ()) for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
        yield node.lineno, node.module, [alias.name for alias in node.names]
    elif isinstance(node, ast.Call) and name_of(node.func) in _IMPORTERS:
        given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "name")]
        if given and isinstance(given[0], ast.Constant) and not text_of(given[0]).startswith("."):
            yield line_of(node), text_of(given[0]), ()


def _row_of_module(missing: tuple[Missing, ...], name: str) -> Missing | None:
    if (row := next((row for row in missing if row.has_module(name)), None)) is not None:
        return row
    own = next((key for module, key in _MODULES.items() if f"{name}.".startswith(f"{module}.")), None)
    if own is None and name.startswith("pyspark."):
        own = FUNCTIONS.get(name.rpartition(".")[2])
    return None if own is None else _row(missing, own)


def _foreign(number: int, name: str) -> Line:
    top = name.partition(".")[0]
    if top == "awsglue":
        return fail(number, f"imports {name}", _GLUE)
    return warn(number, f"imports {top}, which is not in the image", "name it in pyFiles, or derive an image with it")


def _optional(line: Line) -> Line:
    """Tell of a line without which the script goes on."""
    what = line.finding.detail.partition(",")[0]
    detail = f"{what}, which is used if it is there: the image does not have it"
    return warn(line.number, detail, "nothing, if the job can do without it")


def _names(nodes: Sequence[Node], missing: tuple[Missing, ...]) -> Iterator[Line]:
    own = _own_names(nodes)
    tried = {name for found in nodes if found.is_optional for _, name, _ in _imported(found.node)}
    for node in (found.node for found in nodes):
        if not isinstance(node, ast.Attribute | ast.Name) or (name := name_of(node)) in own:
            continue
        key = _PANDAS if name in METHODS and isinstance(node, ast.Attribute) else FUNCTIONS.get(name)
        if key is not None and (row := _row(missing, key)) is not None:
            line = _lacks(line_of(node), f"uses {name}", row)
            # Who tries whether pandas is there also knows when not to call what needs it.
            yield _optional(line) if any(row.has_module(name) for name in tried) else line


def _own_names(nodes: Sequence[Node]) -> set[str]:
    """Return the names that the script gives to things which are not PySpark's."""
    names: set[str] = set()
    for node in (found.node for found in nodes):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom) and not f"{node.module}.".startswith("pyspark."):
            names.update(alias.asname or alias.name for alias in node.names)
    return names


def _formats(nodes: Sequence[Node], missing: tuple[Missing, ...]) -> Iterator[Line]:
    for number, text in named_formats(nodes):
        name = text.lower()
        if name == "jdbc":
            yield from _by_jdbc(number, nodes, missing)
        elif (row := _row_of_format(missing, name)) is not None:
            yield _lacks(number, f"uses the format {name}", row)
        elif _FOREIGN_FORMATS.fullmatch(name):
            remedy = "use Delta, or derive an image with its jar (image/derived), without a guard"
            yield fail(number, f"uses the format {name}, which is not in the image", remedy)
    for call in calls(nodes):
        if name_of(call.func) == "jdbc":
            yield from _by_jdbc(line_of(call), nodes, missing)


def _by_jdbc(number: int, nodes: Sequence[Node], missing: tuple[Missing, ...]) -> Iterator[Line]:
    """Judge by the addresses of databases in the script; without any, by whether the variant has all its drivers."""
    rows = {name: row for row in missing for name in row.formats if name.startswith("jdbc")}
    named = {found[0] for one in nodes if (found := DATABASE.match(text_of(one.node)))}
    for name in sorted(named):
        if name in rows or name not in _DRIVEN:
            yield _lacks(number, f"reads or writes by JDBC ({name})", rows.get(name, rows["jdbc"]))
    if not named and not rows.keys().isdisjoint(_DRIVEN):
        yield _lacks(number, "reads or writes by JDBC", rows["jdbc"])


def _texts(nodes: Sequence[Node], missing: tuple[Missing, ...]) -> Iterator[Line]:
    avro, rocksdb = _row(missing, _AVRO), _row(missing, _ROCKSDB)
    for number, text in texts(nodes):
        if avro is not None and _AVRO_IN_SQL.search(text):
            yield _lacks(number, "uses the format avro", avro)
        if rocksdb is not None and "RocksDBStateStoreProvider" in text:
            yield _lacks(number, "uses the RocksDB state store", rocksdb)
