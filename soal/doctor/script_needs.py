"""Modules, functions, formats and classes that a script uses and a variant of the image lacks.

`missing` lists what the variant lacks (image/spark/missing.toml). IN_IMAGE lists the modules of every variant, so that
the doctor needs neither an image nor a local function. A test compares it with the packages of the local function, slim
and full.
"""

from __future__ import annotations

import ast
import re
import sys
from typing import TYPE_CHECKING, Final

from handler.spark.missing_dependencies import read_missing
from soal.doctor.script_tree import Line, calls, fail, line_of, name_of, text_of, texts, warn
from soal.source_paths import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from handler.spark.missing_dependencies import Missing, Variant
    from soal.doctor.script_tree import Node

IN_IMAGE: Final = frozenset(
    {"annotated_types", "aws_durable_execution_sdk_python", "aws_lambda_powertools", "awslambdaric", "boto3"}
    | {"botocore", "cachetools", "certifi", "charset_normalizer", "dateutil", "delta", "fb303", "idna"}
    | {"importlib_metadata", "jmespath", "mmh3", "py4j", "pydantic", "pydantic_core", "pyiceberg", "pyparsing"}
    | {"pyroaring", "pyspark", "requests", "runtime_client", "s3transfer", "safewriter", "simplejson", "six"}
    | {"snapshot_restore_py", "strictyaml", "tenacity", "typing_extensions", "typing_inspection", "urllib3", "zipp"}
    | {"zstandard"}
)
"""The modules of every variant, without the handler: a job may have a module of that name."""
DATABASE: Final = re.compile(r"jdbc:\w+")
"""The start of a JDBC URL."""
_MAKERS: Final = frozenset({"catalog", "read", "readStream", "write", "writeStream"})
"""Attributes that are a reader or a writer; the catalog also creates tables of a format."""
_STEPS: Final = frozenset(
    {"bucketBy", "clusterBy", "foreach", "foreachBatch", "format", "mode", "option", "options", "outputMode"}
    | {"partitionBy", "partitionedBy", "queryName", "schema", "sortBy", "tableProperty", "trigger", "using"}
)
"""Methods of readers and writers that return the same object."""
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
"""Methods with a format argument: its position and its name."""
_USING: Final = re.compile(r"(?i)\busing\s+`?([\w.]+)")
_STATEMENT: Final = re.compile(
    r"(?i)\b(?:create(?:\s+(?:or|replace|global|temp|temporary|external))*\s+(?:table|view)|replace\s+table"
    r"|insert\s+overwrite(?:\s+local)?\s+directory)\b"
)
"""The start of statements in which USING names a format; joins and merges use the word differently."""
_PANDAS: Final = "pandas"
_AVRO: Final = "avro"
_PROTOBUF: Final = "PROTOBUF_NOT_LOADED_SQL_FUNCTIONS_UNUSABLE"
_ROCKSDB: Final = "org.rocksdb."
METHODS: Final = frozenset(
    {"applyInArrow", "applyInPandas", "applyInPandasWithState", "mapInArrow", "mapInPandas", "pandas_api", "toArrow"}
    | {"toPandas", "transformWithState", "transformWithStateInPandas"}
)
"""PySpark methods that import pandas or PyArrow when they are called."""
FUNCTIONS: Final = {
    "arrow_udf": _PANDAS,
    "arrow_udtf": _PANDAS,
    "pandas_udf": _PANDAS,
    "from_avro": _AVRO,
    "to_avro": _AVRO,
    "from_protobuf": _PROTOBUF,
    "to_protobuf": _PROTOBUF,
}
"""PySpark functions that every variant has, but that fail without this module, format or Java code."""
_MODULES: Final = {"pyspark.sql.avro": _AVRO, "pyspark.sql.datasource": _PANDAS, "pyspark.sql.protobuf": _PROTOBUF}
"""PySpark modules of that kind."""
_IMPORTERS: Final = ("import_module", "__import__")
_AVRO_IN_SQL: Final = re.compile(r"(?i)\bavro\s*\.\s*`|\b(?:from_avro|to_avro|schema_of_avro)\s*\(")
_FOREIGN_FORMATS: Final = re.compile(r"hudi|redshift|bigquery|mongodb|.*snowflake.*")
_DRIVEN: Final = ("jdbc:postgresql", "jdbc:mysql")
"""The databases for which some variant has a driver."""


def modules_of(variant: Variant) -> frozenset[str]:
    """Return the top-level modules of a variant: those of every variant, and those that missing.toml gives it."""
    rows = (row for row in read_missing(MISSING) if variant in row.variants)
    return IN_IMAGE | {module for row in rows for module in row.modules if "." not in module}


def named_formats(nodes: Sequence[Node]) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each format."""
    readers = _readers(nodes)
    for call in calls(nodes):
        if (text := _argument(call, readers)) is not None:
            yield line_of(call), text
    for number, text in texts(nodes):
        statement = _STATEMENT.search(text)
        for match in _USING.finditer(text):
            if statement is not None and statement.end() <= match.start():
                yield number, match[1]


def _argument(call: ast.Call, readers: AbstractSet[str]) -> str | None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _ARGUMENTS:
        return None
    position, name = _ARGUMENTS[call.func.attr]
    values = [keyword.value for keyword in call.keywords if keyword.arg == name] or call.args[position : position + 1]
    return text_of(values[0]) if values and _is_reader(call.func.value, readers) else None


def _readers(nodes: Sequence[Node]) -> AbstractSet[str]:
    """Return the names of the variables and attributes that hold a reader or a writer."""
    readers: set[str] = set()
    for node in (entry.node for entry in nodes):
        if isinstance(node, ast.Assign) and _is_reader(node.value, readers):
            readers.update(name_of(target) for target in node.targets)
        elif isinstance(node, ast.NamedExpr) and _is_reader(node.value, readers):
            readers.add(node.target.id)
        elif isinstance(node, ast.AnnAssign):
            if _is_class(node.annotation) or (node.value is not None and _is_reader(node.value, readers)):
                readers.add(name_of(node.target))
        elif isinstance(node, ast.arg) and node.annotation is not None and _is_class(node.annotation):
            readers.add(node.arg)
    return readers - {""}


def _is_class(annotation: ast.expr) -> bool:
    return (name_of(annotation) or text_of(annotation)) in _CLASSES


def _is_reader(node: ast.expr, readers: AbstractSet[str]) -> bool:
    """Return whether an expression is a reader or writer; `"{}".format("avro")` is not."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "writeTo":
            return True
        if node.func.attr not in _STEPS:
            return False
        node = node.func.value
    return name_of(node) in readers or (isinstance(node, ast.Attribute) and node.attr in _MAKERS)


def needs_of(nodes: Sequence[Node], missing: tuple[Missing, ...], variant: Variant) -> Iterator[Line]:
    """Yield a line for each use of something that the variant lacks."""
    yield from _imports(nodes, missing, variant)
    yield from _names(nodes, missing)
    yield from _formats(nodes, missing)
    yield from _texts(nodes, missing)


def _row(missing: tuple[Missing, ...], key: str) -> Missing | None:
    """Return the entry with this module, format, class prefix, or sign."""
    return next((row for row in missing if key in (*row.modules, *row.formats, *row.classes, *row.signs)), None)


def _row_of_format(missing: tuple[Missing, ...], name: str) -> Missing | None:
    return next((row for row in missing if name in row.formats), None)


def _lacks(number: int, detail: str, row: Missing) -> Line:
    return fail(number, detail, row.sentence, row.variants)


def _imports(nodes: Sequence[Node], missing: tuple[Missing, ...], variant: Variant) -> Iterator[Line]:
    available = modules_of(variant) | sys.stdlib_module_names
    for entry in nodes:
        for number, module, parts in _imported(entry.node):
            names = [module, *(f"{module}.{part}" for part in parts)]
            rows = {name: row for name in names if (row := _row_of_module(missing, name)) is not None}
            lacking = [module] if module in rows else list(rows)
            lines = [_lacks(number, f"imports {name}", rows[name]) for name in lacking]
            if not lines and module.partition(".")[0] not in available:
                lines = [_foreign(number, module)]
            yield from (_optional(line) for line in lines) if entry.is_optional else lines


def _imported(node: ast.AST) -> Iterator[tuple[int, str, Sequence[str]]]:
    """Yield the line and name of each module that a node imports, with the names imported from it."""
    if isinstance(node, ast.Import):
        yield from ((node.lineno, alias.name, ()) for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
        yield node.lineno, node.module, [alias.name for alias in node.names]
    elif isinstance(node, ast.Call) and name_of(node.func) in _IMPORTERS:
        arguments = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "name")]
        if arguments and isinstance(arguments[0], ast.Constant) and not text_of(arguments[0]).startswith("."):
            yield line_of(node), text_of(arguments[0]), ()


def _row_of_module(missing: tuple[Missing, ...], name: str) -> Missing | None:
    if (row := next((row for row in missing if row.has_module(name)), None)) is not None:
        return row
    key = next((key for module, key in _MODULES.items() if f"{name}.".startswith(f"{module}.")), None)
    if key is None and name.startswith("pyspark."):
        key = FUNCTIONS.get(name.rpartition(".")[2])
    return None if key is None else _row(missing, key)


def _foreign(number: int, name: str) -> Line:
    top = name.partition(".")[0]
    return warn(number, f"imports {top}, which is not in the image", "name it in pyFiles, or derive an image with it")


def _optional(line: Line) -> Line:
    """Return a warning for a line whose failure the script handles."""
    need = line.finding.detail.partition(",")[0]
    detail = f"{need}, which the script can do without: the image does not have it"
    return warn(line.number, detail, "nothing, if the job can do without it")


def _names(nodes: Sequence[Node], missing: tuple[Missing, ...]) -> Iterator[Line]:
    own_names = _own_names(nodes)
    optional = {name for entry in nodes if entry.is_optional for _, name, _ in _imported(entry.node)}
    for node in (entry.node for entry in nodes):
        if not isinstance(node, ast.Attribute | ast.Name) or (name := name_of(node)) in own_names:
            continue
        key = _PANDAS if name in METHODS and isinstance(node, ast.Attribute) else FUNCTIONS.get(name)
        if key is not None and (row := _row(missing, key)) is not None:
            line = _lacks(line_of(node), f"uses {name}", row)
            # A script that tests for pandas calls its functions only if pandas is there.
            yield _optional(line) if any(row.has_module(name) for name in optional) else line


def _own_names(nodes: Sequence[Node]) -> set[str]:
    """Return the names that the script defines itself or imports from modules other than PySpark."""
    names: set[str] = set()
    for node in (entry.node for entry in nodes):
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
    """Yield a line for each JDBC URL without a driver; without any URL, one line unless the variant has all drivers."""
    rows = {name: row for row in missing for name in row.formats if name.startswith("jdbc")}
    databases = {match[0] for entry in nodes if (match := DATABASE.match(text_of(entry.node)))}
    for name in sorted(databases):
        if name in rows or name not in _DRIVEN:
            yield _lacks(number, f"reads or writes by JDBC ({name})", rows.get(name, rows["jdbc"]))
    if not databases and not rows.keys().isdisjoint(_DRIVEN):
        yield _lacks(number, "reads or writes by JDBC", rows["jdbc"])


def _texts(nodes: Sequence[Node], missing: tuple[Missing, ...]) -> Iterator[Line]:
    avro, rocksdb = _row(missing, _AVRO), _row(missing, _ROCKSDB)
    for number, text in texts(nodes):
        if avro is not None and _AVRO_IN_SQL.search(text):
            yield _lacks(number, "uses the format avro", avro)
        if rocksdb is not None and "RocksDBStateStoreProvider" in text:
            yield _lacks(number, "uses the RocksDB state store", rocksdb)
