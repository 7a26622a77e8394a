"""The doctor finds in a script the modules and functions that an image variant lacks, optional imports apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from soal.doctor.script_needs import FUNCTIONS, METHODS
from tests.unit.soal.doctor.examined import look, one

if TYPE_CHECKING:
    from pathlib import Path

ROCKSDB = "'org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider'"


@pytest.mark.parametrize(
    "line",
    [
        "import pandas as pd",
        "import os, numpy.linalg",
        "import psycopg2",
        "from sqlalchemy.orm import Session",
        "from pyspark.ml.feature import VectorAssembler",
        "from pyspark import pandas",
        "import pyspark.pandas as ps",
        "from pyspark.mllib.linalg import Vectors",
        "importlib.import_module('numpy')",
        "import_module(name='pyspark.ml')",
        "pd = __import__('pandas')",
        "frame.toPandas()",
        "frame.toPandas().plot(); frame.pandas_api() if a else frame.toPandas()",
        "frame.pandas_api().sort_index()",
        "frame.mapInPandas(f, 'a int')",
        "frame.mapInArrow(f, 'a int')",
        "frame.groupBy('a').applyInPandas(f, 'a int')",
        "a.groupby('a').cogroup(b.groupby('a')).applyInPandas(f, 'a int')",
        "frame.toArrow()",
        "frame.groupBy('a').applyInArrow(f, 'a int')",
        "frame.groupBy('a').applyInPandasWithState(f, 'a int', 'b int', 'append', 'none')",
        "frame.groupBy('a').transformWithStateInPandas(P(), 'a int', 'append', 'none')",
        "frame.groupBy('a').transformWithState(P(), 'a int', 'append', 'none')",
        "from pyspark.sql.functions import pandas_udf",
        "from pyspark.sql.functions import col, arrow_udf as udf",
        "@F.pandas_udf('long')\ndef f(x): ...",
        "@pandas_udf('long')\ndef f(x): ...",
        "@F.arrow_udtf(returnType='a int')\nclass T: ...",
        "f = F.arrow_udf(lambda x: x, 'long')",
        "from pyspark.sql.datasource import DataSource",
        "from pyspark.sql.avro.functions import from_avro, to_avro",
        "import pyspark.sql.avro.functions as avro",
        "frame.select(avro.to_avro('a'))",
        "frame.selectExpr('from_avro(a, s) AS b')",
        f"spark.conf.set('spark.sql.streaming.stateStore.providerClass', {ROCKSDB})",
        f"PROVIDER = {ROCKSDB}",
        "frame.write.jdbc('jdbc:postgresql://db', 't')",
    ],
)
def test_what_needs_the_full_image_says_so(tmp_path: Path, line: str) -> None:
    """The line fails on slim and is accepted on full."""
    variant, *failed = look(tmp_path, line)
    assert {(found.status, found.name) for found in failed} == {("fail", "job.py:1")}
    assert all("full" in found.remedy for found in failed)
    assert (variant.name, variant.status) == ("job.py", "warn")
    assert "the image's variant full" in variant.detail
    assert [found.status for found in look(tmp_path, line, "full")] == ["ok"]


@pytest.mark.parametrize(
    "module", ["requests", "pyiceberg.catalog", "six", "certifi", "tenacity", "zstandard", "cachetools", "boto3"]
)
def test_what_the_image_has_is_no_matter(tmp_path: Path, module: str) -> None:
    """A script may import every module of the image's packages."""
    assert one(tmp_path, f"import {module}").status == "ok"


@pytest.mark.parametrize("module", ["handler.settings", "polars", "awsglue.utils", "pyspark.sql.protobuf.functions"])
def test_what_no_variant_has_is_told(tmp_path: Path, module: str) -> None:
    """A module that no variant has is reported; the doctor suggests no variant."""
    assert one(tmp_path, f"import {module}").detail.startswith("imports ")


@pytest.mark.parametrize(
    "text",
    [
        "def to_avro(row): ...\nto_avro(row)",
        "from .mine import pandas_udf\npandas_udf(f)",
        "toPandas(frame)",
        "from .pandas import read",
        "import_module(name)",
        "import_module('.pandas', 'mine')",
        "'''Writes toPandas() USING avro and avro.`path` by RocksDBStateStoreProvider.'''\n'hdfs://x'",
    ],
)
def test_what_only_looks_like_it_is_left_alone(tmp_path: Path, text: str) -> None:
    """The script's own functions, relative and unknown modules, and docstrings are left alone."""
    assert one(tmp_path, text).status == "ok"


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import pandas as pd\nexcept ImportError:\n    pd = None",
        "try:\n    from pyspark import pandas\nexcept (AttributeError, ModuleNotFoundError):\n    pass",
        "try:\n    pd = importlib.import_module('pandas')\nexcept Exception:\n    pd = None",
        "try:\n    if a:\n        import pandas\nexcept:\n    pass",
        "try:\n    try:\n        import pandas\n    finally:\n        a()\nexcept builtins.ImportError:\n    pass",
        "with contextlib.suppress(ImportError):\n    import pandas",
    ],
)
def test_an_import_that_may_fail_is_optional(tmp_path: Path, text: str) -> None:
    """An import that may fail is a warning, and the doctor suggests no variant."""
    finding = one(tmp_path, text)
    assert finding.status == "warn"
    assert "which the script can do without" in finding.detail


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import pandas\nexcept ValueError:\n    pass",
        "try:\n    import pandas\nexcept ImportError as error:\n    raise SystemExit('no pandas') from error",
        "try:\n    import pandas\nexcept ImportError:\n    log()\n    sys.exit(1)\nexcept Exception:\n    pass",
        "try:\n    import tomli\nexcept ImportError:\n    import pandas",
        "try:\n    a()\nexcept ImportError:\n    pass\nelse:\n    import pandas",
        "try:\n    def f():\n        import pandas\nexcept ImportError:\n    pass",
        "with suppress(ValueError):\n    import pandas",
    ],
)
def test_an_import_that_ends_the_script_is_not_optional(tmp_path: Path, text: str) -> None:
    """An import is not optional if no handler catches it, the handler ends the script, or it is elsewhere."""
    found = look(tmp_path, text)
    assert "it needs the image's variant full" in {finding.detail for finding in found}
    assert [finding.detail for finding in found if finding.status == "fail"] == ["imports pandas"]


def test_what_needs_an_optional_module_is_optional_too(tmp_path: Path) -> None:
    """A script that tests for pandas calls `toPandas()` only if pandas is there."""
    tried = "try:\n    import pandas\nexcept ImportError:\n    pandas = None\nif pandas:\n    frame.toPandas()\n"
    assert [(found.status, found.name) for found in look(tmp_path, tried)] == [
        ("warn", "job.py:2"),
        ("warn", "job.py:6"),
    ]
    assert "fail" in {found.status for found in look(tmp_path, f"{tried}frame.write.format('avro').save(p)")}


@pytest.mark.parametrize(
    "text",
    [
        "if TYPE_CHECKING:\n    import pandas\n    from pyspark.ml import Model",
        "if typing.TYPE_CHECKING:\n    import pandas\nelse:\n    pandas = None",
        "if not TYPE_CHECKING:\n    pandas = None\nelse:\n    import pandas",
    ],
)
def test_what_only_type_checkers_read_does_not_count(tmp_path: Path, text: str) -> None:
    """Code for type checkers is not examined: Python never runs it."""
    assert one(tmp_path, text).status == "ok"


@pytest.mark.parametrize(
    "text",
    ["if TYPE_CHECKING:\n    a()\nelse:\n    import pandas", "if not TYPE_CHECKING:\n    import pandas"],
)
def test_what_type_checkers_do_not_read_counts(tmp_path: Path, text: str) -> None:
    """Code that only type checkers skip is examined: Python runs it."""
    assert "imports pandas" in {finding.detail for finding in look(tmp_path, text)}


def test_the_methods_and_functions_are_pyspark_s() -> None:
    """PySpark has each name in the tables."""
    from pyspark.sql import DataFrame, GroupedData, functions
    from pyspark.sql.avro import functions as avro
    from pyspark.sql.protobuf import functions as protobuf

    assert [name for name in METHODS if not any(hasattr(one, name) for one in (DataFrame, GroupedData))] == []
    assert [name for name in FUNCTIONS if not any(hasattr(one, name) for one in (functions, avro, protobuf))] == []
