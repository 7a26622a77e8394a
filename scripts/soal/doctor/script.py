"""Findings about a script that was written for another runtime: read, never run.

A setting that the handler ignores, and reports in the result, is a warning; a line that will fail is a failure.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from handler.driver.script_settings import why_left_out
from handler.spark.missing_dependencies import SLIM, read_missing
from scripts.image.settings import shipped_settings
from scripts.soal.doctor.finding import Finding
from scripts.soal.local.home import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from handler.spark.missing_dependencies import Missing, Variant

    _Found = tuple[int, Finding]
    _Lacking = tuple[_Found, Missing | None]
    """With the missing thing that the image's list names."""

__all__ = ["IN_FULL", "IN_IMAGE", "examine_script"]

IN_IMAGE: Final = frozenset(
    {"aws_lambda_powertools", "awslambdaric", "boto3", "botocore", "dateutil", "delta", "handler", "jmespath", "py4j"}
    | {"pydantic", "pyspark", "s3transfer", "safewriter", "simplejson", "typing_extensions", "urllib3"}
)
"""Modules that are in the image, besides Python's own."""
IN_FULL: Final = frozenset({"numpy", "pandas", "psycopg2", "pyarrow", "pytz", "sqlalchemy"})
"""Those that its variant full has, too."""
_FOREIGN_FORMATS: Final = re.compile(r"(?i)hudi|redshift|bigquery|mongodb|.*snowflake.*")
_GLUE: Final = (
    "Glue's library is only in Glue: read and write with spark.read and DataFrame.write, and arguments with argparse"
    " (--key value is passed on as it is)"
)
_DATABASE: Final = re.compile(r"jdbc:\w+")
_DRIVEN: Final = ("jdbc:postgresql", "jdbc:mysql")
"""The databases whose drivers some variant of the image has."""
_METHODS: Final = {
    "master": "spark.master",
    "setMaster": "spark.master",
    "remote": "spark.remote",
}
_WRITES: Final = frozenset({"save", "saveAsTable", "insertInto", "append", "overwrite", "overwritePartitions"})
_SQL: Final = re.compile(r"(?is)\s*(insert|merge|update|delete|truncate|create\s.*\stable\s.*\sas\s)\b")
_ELSEWHERE: Final = re.compile(r"(hdfs|s3n|dbfs|wasbs?|abfss?|gs):/")
_UNKNOWN: Final = "\N{HORIZONTAL ELLIPSIS}"
_GUARDED: Final = ("delta", "iceberg")
_GUARD_IT: Final = (
    "guard it: `with SafeWriter(spark, table, format='{}') as sw:` around it, `sw.success()` as its last line"
)


@dataclass(frozen=True, slots=True)
class _Setting:
    """`is_hadoop`: the script writes it into Hadoop's configuration, where no setting is left out."""

    line: int
    key: str
    value: str
    is_hadoop: bool = False


def examine_script(path: Path, variant: Variant = SLIM) -> Iterator[Finding]:
    """Yield the lines to change in a script for a variant of the image; `OSError` if it cannot be read."""
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        yield Finding(f"{path.name}:{line}", "fail", f"this is not Python 3: {error}", "correct it")
        return
    missing = read_missing(ROOT / "image" / "spark" / "missing.toml", variant)
    lacking = [*_imports(tree, missing, variant), *_calls(tree, missing)]
    found = [*(one for one, _ in lacking), *_settings(tree), *_writes(tree), *_surroundings(tree)]
    if not found:
        yield Finding(path.name, "ok", "there is nothing to change")
    if others := {name for _, row in lacking if row is not None for name in row.variants}:
        (other,) = others
        yield Finding(
            path.name,
            "warn",
            f"it needs the image's variant {other}",
            f"soal image build --variant {other}, and in the stack the context key image_variant={other}",
        )
    for line, finding in sorted(found, key=lambda one: one[0]):
        yield Finding(f"{path.name}:{line}", finding.status, finding.detail, finding.remedy)


def _warn(line: int, detail: str, remedy: str) -> _Found:
    return line, Finding("", "warn", detail, remedy)


def _fail(line: int, detail: str, remedy: str) -> _Found:
    return line, Finding("", "fail", detail, remedy)


def _imports(tree: ast.AST, missing: tuple[Missing, ...], variant: Variant) -> Iterator[_Lacking]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        rows = {name: next((row for row in missing if row.has_module(name)), None) for name in names}
        for name, row in rows.items():
            is_whole = name == names[0] or isinstance(node, ast.Import)
            if row is not None and (is_whole or rows[names[0]] is None):
                yield _fail(node.lineno, f"imports {name}", row.sentence), row
            elif row is None and is_whole and (told := _foreign(node.lineno, name, variant)):
                yield told, None


def _foreign(line: int, name: str, variant: Variant) -> _Found | None:
    top = name.partition(".")[0]
    if top == "awsglue":
        return _fail(line, f"imports {name}", _GLUE)
    if top in IN_IMAGE or top in sys.stdlib_module_names or (variant != SLIM and top in IN_FULL):
        return None
    return _warn(line, f"imports {top}, which is not in the image", "name it in pyFiles, or derive an image with it")


def _settings(tree: ast.AST) -> Iterator[_Found]:
    shipped = shipped_settings()
    for setting in _all_settings(tree):
        why = why_left_out(setting.key, setting.value, shipped.get(setting.key))
        if why is None:
            continue
        if setting.is_hadoop:
            detail = f"writes {setting.key} into Hadoop's configuration, past every check"
            yield _fail(setting.line, detail, f"leave it out: {why}")
        else:
            yield _warn(setting.line, f"sets {setting.key}, which is ignored here", f"leave it out: {why}")


def _all_settings(tree: ast.AST) -> Iterator[_Setting]:
    for call in _all_calls(tree):
        name, line = _name(call.func), _line(call)
        if name in _METHODS and call.args:
            yield _Setting(line, _METHODS[name], _text(call.args[0]))
        elif name == "enableHiveSupport":
            yield _Setting(line, "spark.sql.catalogImplementation", "hive")
        elif name == "SparkContext" and call.args:
            yield _Setting(line, "spark.master", _text(call.args[0]))
        elif name in ("config", "set", "setAll"):
            yield from _pairs(call, line)


def _pairs(call: ast.Call, line: int) -> Iterator[_Setting]:
    is_hadoop = "hadoopConfiguration" in _chain(call)
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    arguments = [*call.args, *(given[name] for name in ("key", "value") if name in given)]
    pairs: list[tuple[ast.expr | None, ast.expr]] = []
    if len(arguments) == 2:  # noqa: PLR2004 - a key and a value
        pairs.append((arguments[0], arguments[1]))
    if isinstance(mapping := given.get("map"), ast.Dict):
        pairs.extend(zip(mapping.keys, mapping.values, strict=True))
    if len(arguments) == 1 and isinstance(arguments[0], ast.List | ast.Tuple):
        pairs.extend((each.elts[0], each.elts[1]) for each in arguments[0].elts if isinstance(each, ast.Tuple))
    for key, value in pairs:
        if isinstance(key, ast.Constant) and str(key.value).startswith(("spark.", "fs.")):
            yield _Setting(key.lineno if len(pairs) > 1 else line, str(key.value), _text(value), is_hadoop)


def _calls(tree: ast.AST, missing: tuple[Missing, ...]) -> Iterator[_Lacking]:
    for call in _all_calls(tree):
        name, line = _name(call.func), _line(call)
        if name == "jdbc":
            yield from _by_jdbc(line, tree, missing)
        elif name == "format" and call.args and {"read", "write", "readStream", "writeStream"} & _chain(call):
            text = _text(call.args[0])
            row = next((row for row in missing if text.lower() in row.formats), None)
            if text.lower() == "jdbc":
                yield from _by_jdbc(line, tree, missing)
            elif row is not None:
                yield _fail(line, f"uses the format {text}", row.sentence), row
            elif _FOREIGN_FORMATS.fullmatch(text):
                remedy = "use Delta, or derive an image with its jar (image/derived), without a guard"
                yield _fail(line, f"uses the format {text}, which is not in the image", remedy), None


def _by_jdbc(line: int, tree: ast.AST, missing: tuple[Missing, ...]) -> Iterator[_Lacking]:
    """Judge by the addresses of databases in the script; without any, by whether the variant has all its drivers."""
    rows = {name: row for row in missing for name in row.formats if name.startswith("jdbc")}
    named = {
        found[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and (found := _DATABASE.match(str(node.value)))
    }
    for name in sorted(named):
        if name in rows or name not in _DRIVEN:
            row = rows.get(name, rows["jdbc"])
            yield _fail(line, f"reads or writes by JDBC ({name})", row.sentence), row
    if not named and not rows.keys().isdisjoint(_DRIVEN):
        yield _fail(line, "reads or writes by JDBC", rows["jdbc"].sentence), rows["jdbc"]


def _writes(tree: ast.AST) -> Iterator[_Found]:
    guarded: set[ast.AST] = set()
    for block in ast.walk(tree):
        if isinstance(block, ast.With | ast.AsyncWith) and any(_is_guard(item.context_expr) for item in block.items):
            inner = [node for statement in block.body for node in ast.walk(statement)]
            guarded.update(inner)
            if not any(isinstance(node, ast.Call) and _name(node.func) == "success" for node in inner):
                yield _fail(block.lineno, "a SafeWriter block without success(): it is rolled back", "call it last")
    for call in _all_calls(tree):
        if call not in guarded and (found := _write(call)) is not None:
            what, table_format = found
            detail = f"{what}, without a guard: a kill may lose it, a retry may double it"
            yield _warn(_line(call), detail, _GUARD_IT.format(table_format))


def _write(call: ast.Call) -> tuple[str, str] | None:
    """Describe a call that is known to write into a table, and name the table's format; None for any other call."""
    name, chain = _name(call.func), _chain(call)
    found = next((one for one in _GUARDED if one in _formats(call)), None)
    if name in _WRITES and "write" in chain and found is not None:
        return f"appends to or overwrites {'a Delta' if found == 'delta' else 'an Iceberg'} table", found
    if name in _WRITES and "writeTo" in chain:
        return "appends to or overwrites a table of a catalog", "iceberg"
    if name == "execute" and "merge" in chain:
        return "merges into a table", "delta"
    if name == "sql" and call.args and _SQL.match(_text(call.args[0])):
        return f"changes a table by {_text(call.args[0]).split()[0].upper()}", _UNKNOWN
    return None


def _surroundings(tree: ast.AST) -> Iterator[_Found]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("environ"):
            name = _text(node.slice)
            if name != _UNKNOWN and not name.startswith("AWS_") and isinstance(node.ctx, ast.Load):
                remedy = (
                    f"set it for the function (context environment, or --env {name}=…); a key of an event never becomes"
                    " a variable: read it from --event"
                )
                yield _warn(node.lineno, f"needs the variable {name}", remedy)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and (at := _ELSEWHERE.match(node.value)):
            yield _fail(node.lineno, f"names a path of {at[1]}, for which there is no file system", "use s3a://")


def _all_calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _is_guard(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _name(node.func) == "SafeWriter"


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _chain(call: ast.Call) -> set[str]:
    """Return all names on the way to a call: `frame.write.format("x").save()` has frame, write, format, save."""
    names, node = set(), call.func
    while True:
        names.add(_name(node))
        if isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return names


def _formats(call: ast.Call) -> set[str]:
    """Return the formats that are named on the way to a call, or in it."""
    found = {_text(keyword.value) for keyword in call.keywords if keyword.arg == "format"}
    node: ast.expr = call.func
    while isinstance(node, ast.Attribute | ast.Call):
        if isinstance(node, ast.Call) and _name(node.func) == "format" and node.args:
            found.add(_text(node.args[0]))
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return found


def _line(call: ast.Call) -> int:
    """Return the line of the name that is called: a chain over many lines begins elsewhere."""
    return (call.func.end_lineno if isinstance(call.func, ast.Attribute) else None) or call.lineno


def _text(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else _UNKNOWN
