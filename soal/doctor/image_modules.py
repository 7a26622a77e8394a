"""The Python modules that a job can import, besides Python's own: what the image's packages have at their top.

It is a table, so that a script can be examined where no image and no local function has been made. Its test compares it
with the packages of the local function, slim and full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handler.spark.missing_dependencies import read_missing
from soal.tree import MISSING

if TYPE_CHECKING:
    from handler.spark.missing_dependencies import Variant

__all__ = ["IN_IMAGE", "modules_of"]

IN_IMAGE: Final = frozenset(
    {"annotated_types", "aws_durable_execution_sdk_python", "aws_lambda_powertools", "awslambdaric", "boto3"}
    | {"botocore", "cachetools", "certifi", "charset_normalizer", "dateutil", "delta", "fb303", "idna"}
    | {"importlib_metadata", "jmespath", "mmh3", "py4j", "pydantic", "pydantic_core", "pyiceberg", "pyparsing"}
    | {"pyroaring", "pyspark", "requests", "runtime_client", "s3transfer", "safewriter", "simplejson", "six"}
    | {"snapshot_restore_py", "strictyaml", "tenacity", "typing_extensions", "typing_inspection", "urllib3", "zipp"}
    | {"zstandard"}
)
"""The modules that each variant has. The handler is none of them: a job may have a module of this name."""


def modules_of(variant: Variant) -> frozenset[str]:
    """Return the modules at the top of a variant: every variant's, and what the list of missing things says it has."""
    rows = (row for row in read_missing(MISSING) if variant in row.variants)
    return IN_IMAGE | {module for row in rows for module in row.modules if "." not in module}
