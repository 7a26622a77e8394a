"""The handler tells from a job's exception which dependency the image lacks, and names the remedy."""

from __future__ import annotations

import re
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from handler.spark.missing_dependencies import Missing, Raised, explain, read_missing

ROOT = Path(__file__).parents[4]
LIST = ROOT / "image" / "spark" / "missing.toml"


def of_spark(text: str, kind: str = "Py4JJavaError") -> Raised:
    return Raised(kind, of_spark=True, text=text)


def packages(name: str) -> set[str]:
    """Return the packages of a lock file."""
    return set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements" / name).read_text(encoding="utf-8"), re.MULTILINE))


def no_module(name: str) -> Raised:
    return Raised("ModuleNotFoundError", of_spark=False, text=f"No module named '{name}'")


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (of_spark("a.E: no\njava.lang.ClassNotFoundException: org.rocksdb.Filter"), "the RocksDB state store"),
        (of_spark("java.lang.NoClassDefFoundError: org/rocksdb/Filter"), "the RocksDB state store"),
        (
            Raised("ModuleNotFoundError", of_spark=True, text="/x/pyspark/ml/base.py\nNo module named 'numpy'"),
            "MLlib",
        ),
        (of_spark("Error while instantiating 'org.apache.spark.sql.hive.HiveSessionStateBuilder':"), "Hive"),
        (of_spark("Failed to find data source: avro. Avro is built-in but external"), "the Avro format"),
        (of_spark("Failed to find the data source: AVRO. Make sure"), "the Avro format"),
        (of_spark("Failed to find the data source: org.apache.spark.sql.avro."), "the Avro format"),
        (of_spark("[AVRO_NOT_LOADED_SQL_FUNCTIONS_UNUSABLE] Cannot call FROM_AVRO"), "the Avro format"),
        (
            of_spark("java.sql.SQLException: No suitable driver found for jdbc:postgresql://h/lake"),
            "the drivers of PostgreSQL and MySQL",
        ),
        (
            of_spark("java.sql.SQLException: No suitable driver found for jdbc:db2://h/lake"),
            "the database driver that an Iceberg catalog of the type jdbc needs",
        ),
        (of_spark("java.sql.SQLException: No suitable driver"), "the driver of this SQL database"),
        (no_module("pandas"), "pandas, NumPy and PyArrow"),
        (no_module("numpy.linalg"), "pandas, NumPy and PyArrow"),
        (no_module("psycopg2"), "psycopg2 and SQLAlchemy"),
        (of_spark("[PACKAGE_NOT_INSTALLED] Pandas >= 2.2.0 must be installed", "E"), "pandas, NumPy and PyArrow"),
        (
            of_spark("An exception was thrown\nModuleNotFoundError: No module named 'numpy'", "PythonException"),
            "pandas, NumPy and PyArrow",
        ),
        (
            of_spark("java.lang.NoClassDefFoundError: software/amazon/awssdk/services/glue/GlueClient"),
            "the AWS clients in Java that Iceberg's Glue catalog and its S3FileIO need",
        ),
        (
            of_spark("java.lang.NoClassDefFoundError: software/amazon/awssdk/services/dynamodb/Any"),
            "this AWS client in Java",
        ),
        (
            of_spark('UnsupportedFileSystemException: No FileSystem for scheme "gs"'),
            "file systems other than S3 and the local disk",
        ),
    ],
)
def test_an_exception_shows_what_of_the_list_a_job_missed(error: Raised, what: str) -> None:
    """It shows it by the name of a class, a module, a package or a data source, or by a listed text."""
    told = explain([error], read_missing(LIST))
    assert told is not None
    assert told.startswith(f"the image does not have {what}: ")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (no_module("requests"), "imports requests, which neither"),
        (no_module("of_mine.part"), "imports of_mine.part, which neither"),
        (no_module("of-mine"), "imports of-mine, which neither"),
        (no_module("pandas_of_mine"), "imports pandas_of_mine, which neither"),
        (
            of_spark("An exception was thrown\nModuleNotFoundError: No module named 'lxml'", "PythonException"),
            "imports lxml, which neither",
        ),
        (of_spark("[PACKAGE_NOT_INSTALLED] Plotly >= 4.8 must be installed", "E"), "needs the package Plotly here, "),
        (
            of_spark("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: hudi. Make sure"),
            "does not have the data source hudi: ",
        ),
        (of_spark("java.lang.ClassNotFoundException: com.example.Mine"), "have the Java class com.example.Mine: "),
        (of_spark("java.lang.NoClassDefFoundError: com/example/Mine"), "have the Java class com.example.Mine: "),
        (of_spark("Can not load class com.example.Mine, please make sure"), "the Java class com.example.Mine: "),
        (
            of_spark("[CANNOT_LOAD_FUNCTION_CLASS] Cannot load class com.example.Mine when registering the function"),
            "the Java class com.example.Mine: ",
        ),
        (
            of_spark("Cannot find catalog plugin class for catalog 'x': com.example.Mine."),
            "the Java class com.example.Mine: ",
        ),
        (of_spark("'JavaPackage' object is not callable", "TypeError"), "the Java class that the script calls: "),
    ],
)
def test_what_is_on_no_list_is_told_by_its_name(error: Raised, words: str) -> None:
    """The report is one sentence with a remedy."""
    told = explain([error], read_missing(LIST))
    assert told is not None
    assert words in told
    assert "image/derived" in told
    assert "\n" not in told


@pytest.mark.parametrize(
    "error",
    [
        Raised("ValueError", of_spark=False, text="No module named 'x'"),
        Raised("ValueError", of_spark=False, text="Failed to find data source: prices"),
        Raised("RuntimeError", of_spark=False, text="the partner said ClassNotFoundException: com.example.Mine"),
        Raised("ModuleNotFoundError", of_spark=False, text="a hook's own words"),
        of_spark("org.rocksdb.Filter is a class"),
        of_spark("a.E: For input string: java.lang.ClassNotFoundException: com.evil.Miner"),
        of_spark("a.E: [CAST_INVALID_INPUT] The value 'Failed to find data source: prices' cannot be cast"),
        of_spark("ValueError: ModuleNotFoundError: No module named 'miner'", "PythonException"),
        of_spark("a.E: [USER_RAISED_EXCEPTION] [PACKAGE_NOT_INSTALLED] Miner must be installed"),
        of_spark("a.E: Illegal path: NOT_SUPPORTED_COMMAND_WITHOUT_HIVE_SUPPORT and /pyspark/ml/"),
        of_spark("java.lang.NoClassDefFoundError: Could not initialize class com.example.Mine"),
        of_spark("org.apache.iceberg.jdbc.UncheckedSQLException: Failed to connect: jdbc:postgresql://h/lake"),
    ],
)
def test_another_exception_tells_of_nothing_missing(error: Raised) -> None:
    """The script's own exceptions may hold any text."""
    assert explain([error], read_missing(LIST)) is None


def test_the_exception_that_it_came_from_tells_too() -> None:
    """A script may wrap an error in its own."""
    told = explain([Raised("RuntimeError", of_spark=False, text="no frames"), no_module("pandas")], read_missing(LIST))
    assert told is not None
    assert "pandas, NumPy and PyArrow" in told


def test_the_first_thing_that_is_missing_is_told() -> None:
    """Later errors may be its consequences; a listed thing is reported first."""
    rows = (Missing("one", "do without", classes=("a.",)), Missing("two", "do without", signs=("two!",)))
    text = "java.lang.ClassNotFoundException: c.D\njava.lang.NoClassDefFoundError: a/B\ntwo!"
    assert explain([of_spark(text)], rows) == (
        "the image does not have one: do without. A derived image can add it (image/derived)"
    )


def test_each_module_that_only_the_variant_full_has_is_on_the_list() -> None:
    """Otherwise users would bring a package that the other variant has."""
    more = packages("full.txt") - packages("runtime.txt")
    listed = {module for row in read_missing(LIST) if "full" in row.variants for module in row.modules}
    modules = {
        module
        for module, of in packages_distributions().items()
        if not module.startswith("_") and any(one.lower() in more for one in of)
    }
    assert {"numpy", "pandas", "psycopg2"} <= modules
    assert modules - listed == set()


def test_a_thing_of_the_other_variant_is_said_to_be_there() -> None:
    """The sentence names the variant, and says how to do without it."""
    (found,) = (row for row in read_missing(LIST) if row.what == "MLlib")
    assert found.sentence == (
        "the image does not have MLlib: its variant full does (soal image build --variant full, context key"
        " image_variant=full). Without it: train and predict with a Python package in a UDF"
    )
    assert found not in read_missing(LIST, "full")


def test_every_entry_can_be_noticed_and_says_what_to_do() -> None:
    """It has names or other signs, and its sentence is grammatical."""
    for row in read_missing(LIST):
        assert row.classes or row.signs or row.modules or row.formats, row.what
        assert all(name.endswith(".") for name in row.classes), row.what
        assert row.instead[0].islower(), row.what
        assert not row.instead.endswith("."), row.what
