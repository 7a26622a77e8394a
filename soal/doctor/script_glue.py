"""What a script of AWS Glue calls of Glue's own library, and what it says instead: docs/guides/migrating.md has all."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from soal.doctor.script_tree import Line, fail, line_of, name_of, warn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from soal.doctor.script_tree import Node

_LIBRARY: Final = "awsglue"
_ARGUMENTS: Final = 'take arguments by argparse: add_argument("--day", required=True), parse_known_args()'
_SESSION: Final = "use SparkSession.builder.getOrCreate()"
_READ: Final = 'use spark.read.csv(path) and its like; an Iceberg table of the Data Catalog: spark.table("lake.d.t")'
_WRITE: Final = "use frame.write.parquet(path) and its like, or a guarded write to a table"
_MAPPING: Final = 'use frame.select(col("a").cast("long").alias("b"))'
_TRANSFORM: Final = "use the methods of data frames: select, drop, withColumnRenamed, join, na.drop …"
_FRAME: Final = "use the data frame itself"
_JOB: Final = "leave it out: sw.success() ends a guarded write"
_BOOKMARK: Final = (
    "nothing keeps bookmarks here: give each batch a clientToken of its own, or read a stream with foreachBatch"
)
REPLACED: Final = {
    "getResolvedOptions": _ARGUMENTS,
    "GlueContext": _SESSION,
    "create_dynamic_frame": _READ,
    "create_data_frame": _READ,
    "write_dynamic_frame": _WRITE,
    "write_data_frame": _WRITE,
    "ApplyMapping": _MAPPING,
    "ResolveChoice": _TRANSFORM,
    "DropNullFields": _TRANSFORM,
    "Relationalize": _TRANSFORM,
    "DynamicFrame": _FRAME,
    "Job": _JOB,
    "transformation_ctx": _BOOKMARK,
}
"""Names of the library with what a script says instead; longer names that begin with one in small letters, too."""
_OF_JOB: Final = ("init", "commit")
_CONTEXT: Final = "transformation_ctx"


def glue_of(nodes: Sequence[Node]) -> Iterator[Line]:
    """Yield a line for each use of Glue's library in a script that cannot do without it."""
    if not any(_imports_it(entry.node) and not entry.is_optional for entry in nodes):
        return
    jobs = {name_of(target) for entry in nodes for target in _made_by_job(entry.node)}
    contexts = []
    for node in (entry.node for entry in nodes):
        if isinstance(node, ast.keyword) and node.arg == _CONTEXT:
            contexts.append(node.lineno)
        elif isinstance(node, ast.Attribute) and node.attr in _OF_JOB and name_of(node.value) in jobs:
            yield fail(line_of(node), f"calls {name_of(node.value)}.{node.attr} of Glue", _JOB)
        elif isinstance(node, ast.Attribute | ast.Name) and (key := _key(name_of(node))) is not None:
            yield fail(line_of(node), f"uses {key} of Glue", REPLACED[key])
    if contexts:
        yield warn(contexts[0], f"names {_CONTEXT}, a job bookmark of Glue", _BOOKMARK)


def _imports_it(node: ast.AST) -> bool:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    return any(name.partition(".")[0] == _LIBRARY for name in names)


def _made_by_job(node: ast.AST) -> Sequence[ast.expr]:
    is_one = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and name_of(node.value.func) == "Job"
    return node.targets if isinstance(node, ast.Assign) and is_one else ()


def _key(name: str) -> str | None:
    return next((key for key in REPLACED if name == key or (key.islower() and name.startswith(f"{key}_"))), None)
