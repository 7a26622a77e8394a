"""Findings about a script written for another runtime. The script is parsed, never run.

A `warn` may be intended, such as a setting that the handler ignores and reports; a line that will fail is a `fail`.
This module finds lines that worked elsewhere: settings, writes without a guard, variables and file systems.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from handler.driver.script_settings import why_left_out
from handler.spark.missing_dependencies import SLIM, read_missing
from soal.doctor.finding import Finding
from soal.doctor.script_glue import glue_of
from soal.doctor.script_needs import needs_of
from soal.doctor.script_sinks import sinks_of
from soal.doctor.script_tree import UNKNOWN, Line, calls, chain, fail, line_of, name_of, nodes_of, text_of, warn
from soal.shipped import shipped_settings
from soal.source_paths import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from handler.spark.missing_dependencies import Variant
    from soal.doctor.script_tree import Node

_METHODS: Final = {
    "master": "spark.master",
    "setMaster": "spark.master",
    "remote": "spark.remote",
}
_WRITES: Final = frozenset({"save", "saveAsTable", "insertInto", "append", "overwrite", "overwritePartitions"})
# A script may hold a text of any length: each part of a pattern reads it once, and what it has taken stays taken.
_SQL: Final = re.compile(r"(?is)\s*(?:insert|merge|update|delete|truncate|create\b(?>.*?\stable\s)(?>.*?\sas))\b")
_VARIABLE: Final = re.compile(r"\$\{[^${}]+\}")
_ELSEWHERE: Final = re.compile(r"(hdfs|s3n|dbfs|wasbs?|abfss?|gs):/")
_GUARDED: Final = ("delta", "iceberg")
_GUARD_IT: Final = (
    "guard it: `with SafeWriter(spark, table, format='{}') as sw:` around it, `sw.success()` as its last line"
)
_TOO_DEEP: Final = re.compile(r"too many (?:nested parentheses|levels of indentation)")
"""Messages of Python's `SyntaxError`."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """`is_hadoop`: the script writes it into Hadoop's configuration, which the handler cannot filter."""

    line: int
    key: str
    value: str
    is_hadoop: bool = False


def habits_of(nodes: Sequence[Node]) -> Iterator[Line]:
    """Yield each line that behaves differently here, or fails on every variant of the image."""
    yield from _settings(nodes)
    yield from _writes(nodes)
    yield from _variables_of_sql(nodes)
    yield from _surroundings(nodes)


def _settings(nodes: Sequence[Node]) -> Iterator[Line]:
    shipped = shipped_settings()
    for setting in _all_settings(nodes):
        why = why_left_out(setting.key, setting.value, shipped.get(setting.key))
        if why is None:
            continue
        if setting.is_hadoop:
            detail = f"writes {setting.key} into Hadoop's configuration, past every check"
            yield fail(setting.line, detail, f"leave it out: {why}")
        else:
            yield warn(setting.line, f"sets {setting.key}, which is ignored here", f"leave it out: {why}")


def _all_settings(nodes: Sequence[Node]) -> Iterator[_Setting]:
    for call in calls(nodes):
        name, line = name_of(call.func), line_of(call)
        if name in _METHODS and call.args:
            yield _Setting(line, _METHODS[name], text_of(call.args[0]))
        elif name == "enableHiveSupport":
            yield _Setting(line, "spark.sql.catalogImplementation", "hive")
        elif name == "SparkContext" and call.args:
            yield _Setting(line, "spark.master", text_of(call.args[0]))
        elif name in ("config", "set", "setAll"):
            yield from _pairs(call, line)


def _pairs(call: ast.Call, line: int) -> Iterator[_Setting]:
    is_hadoop = "hadoopConfiguration" in chain(call)
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    arguments = [*call.args, *(keywords[name] for name in ("key", "value") if name in keywords)]
    pairs: list[tuple[ast.expr | None, ast.expr]] = []
    if len(arguments) == 2:  # noqa: PLR2004 - a key and a value
        pairs.append((arguments[0], arguments[1]))
    if isinstance(mapping := keywords.get("map"), ast.Dict):
        pairs.extend(zip(mapping.keys, mapping.values, strict=True))
    if len(arguments) == 1 and isinstance(arguments[0], ast.List | ast.Tuple):
        tuples = [pair.elts for pair in arguments[0].elts if isinstance(pair, ast.Tuple)]
        pairs.extend((pair[0], pair[1]) for pair in tuples if len(pair) == 2)  # noqa: PLR2004 - as above
    for key, value in pairs:
        if isinstance(key, ast.Constant) and str(key.value).startswith(("spark.", "fs.")):
            yield _Setting(key.lineno if len(pairs) > 1 else line, str(key.value), text_of(value), is_hadoop)


def _writes(nodes: Sequence[Node]) -> Iterator[Line]:
    guarded: set[ast.AST] = set()
    for block in (entry.node for entry in nodes):
        if isinstance(block, ast.With | ast.AsyncWith) and any(_is_guard(item.context_expr) for item in block.items):
            inner = [node for statement in block.body for node in ast.walk(statement)]
            guarded.update(inner)
            if not any(isinstance(node, ast.Call) and name_of(node.func) == "success" for node in inner):
                yield fail(block.lineno, "a SafeWriter block without success(): it is rolled back", "call it last")
    for call in calls(nodes):
        if call not in guarded and (write := _write(call)) is not None:
            description, table_format = write
            detail = f"{description}, without a guard: a kill may lose it, a retry may double it"
            yield warn(line_of(call), detail, _GUARD_IT.format(table_format))


def _write(call: ast.Call) -> tuple[str, str] | None:
    """Return what a table-writing call does and the table's format; None for any other call."""
    name = name_of(call.func)
    if name not in _WRITES and name not in ("execute", "sql"):
        return None
    names = chain(call)
    table_format = next((name for name in _GUARDED if name in _formats(call)), None)
    if name in _WRITES and "write" in names and table_format is not None:
        return f"appends to or overwrites {'a Delta' if table_format == 'delta' else 'an Iceberg'} table", table_format
    if name in _WRITES and "writeTo" in names:
        return "appends to or overwrites a table of a catalog", "iceberg"
    if name == "execute" and "merge" in names:
        return "merges into a table", "delta"
    if name == "sql" and call.args and _SQL.match(text_of(call.args[0])):
        return f"changes a table by {text_of(call.args[0]).split()[0].upper()}", UNKNOWN
    return None


def _variables_of_sql(nodes: Sequence[Node]) -> Iterator[Line]:
    for call in calls(nodes):
        if name_of(call.func) == "sql" and call.args and (match := _VARIABLE.search(text_of(call.args[0]))):
            remedy = 'use a parameter (`:day`, args={"day": day}), or set spark.sql.variable.substitute'
            yield warn(line_of(call), f"names {match[0]} in SQL, which Spark does not replace here", remedy)


def _surroundings(nodes: Sequence[Node]) -> Iterator[Line]:
    for node in (entry.node for entry in nodes):
        if isinstance(node, ast.Subscript) and name_of(node.value) == "environ":
            name = text_of(node.slice)
            if name != UNKNOWN and not name.startswith("AWS_") and isinstance(node.ctx, ast.Load):
                remedy = (
                    f"set it for the function (context environment, or --env {name}=…); a key of an event never becomes"
                    " a variable: read it from --event"
                )
                yield warn(node.lineno, f"needs the variable {name}", remedy)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and (at := _ELSEWHERE.match(node.value)):
            yield fail(node.lineno, f"names a path of {at[1]}, for which there is no file system", "use s3a://")


def _is_guard(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) == "SafeWriter"


def _formats(call: ast.Call) -> set[str]:
    """Return the formats named in a call or in the chain before it."""
    formats = {text_of(keyword.value).lower() for keyword in call.keywords if keyword.arg == "format"}
    node: ast.expr = call.func
    while isinstance(node, ast.Attribute | ast.Call):
        if isinstance(node, ast.Call) and name_of(node.func) == "format" and node.args:
            formats.add(text_of(node.args[0]).lower())
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return formats


def examine_script(path: Path, variant: Variant = SLIM) -> Iterator[Finding]:
    """Yield the lines to change in a script for a variant of the image. Raises `OSError` if it cannot be read."""
    text = path.read_bytes()
    try:
        lines = [_notebook()] if _is_notebook(text) else _examined(text, variant)
    except (RecursionError, MemoryError):  # ast and json raise either, depending on the nesting
        lines = [_too_deep(1)]
    lines = sorted(dict.fromkeys(lines), key=lambda line: line.number)
    if not lines:
        yield Finding(path.name, "ok", "there is nothing to change")
    yield from _verdict(path.name, lines)
    yield from (line.finding_in(path.name) for line in lines)


def _examined(text: bytes, variant: Variant) -> list[Line]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        number = getattr(error, "lineno", None) or 1
        if _TOO_DEEP.match(str(error)):
            return [_too_deep(number)]
        return [fail(number, f"this is not Python 3: {error}", "correct it")]
    nodes = tuple(nodes_of(tree))
    needs = needs_of(nodes, read_missing(MISSING, variant), variant)
    return [*needs, *glue_of(nodes), *habits_of(nodes), *sinks_of(nodes)]


def _too_deep(number: int) -> Line:
    return fail(number, "this is nested too deeply to be read", "split it: Python may not be able to run it, either")


def _is_notebook(text: bytes) -> bool:
    """Return whether a file is a notebook. Its JSON is also valid Python: a dictionary without effect."""
    if not text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return False
    try:
        return "nbformat" in json.loads(text)
    except ValueError:
        return False


def _notebook() -> Line:
    remedy = "export it as a script: jupyter nbconvert --to script"
    return fail(1, "this is a Jupyter notebook, not a script", remedy)


def _verdict(name: str, lines: Sequence[Line]) -> Iterator[Finding]:
    """Yield a finding that names the variants with everything the lines need, or how to get it."""
    variants = [set(line.variants) for line in lines if line.variants]
    if not variants:
        return
    if common := sorted(set.intersection(*variants)):
        detail = f"it needs the image's variant {' or '.join(common)}"
        remedy = f"soal image build --variant {common[0]}, and in the stack the context key image_variant={common[0]}"
    else:
        names = ", some in ".join(sorted(set[str]().union(*variants)))
        detail = f"no variant of the image has all that it needs: some of it is in {names}"
        remedy = "derive an image with the rest from one of them (image/derived)"
    yield Finding(name, "warn", detail, remedy)
