from __future__ import annotations

from pathlib import Path

import pytest

from handler.spark.missing_dependencies import Missing, MissingWatch, not_found, read_missing

LIST = Path(__file__).parents[4] / "image" / "spark" / "missing.toml"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"Caused by: java.lang.ClassNotFoundException: org.rocksdb.Filter", "the RocksDB state store"),
        (b"java.lang.NoClassDefFoundError: org/rocksdb/Filter", "the RocksDB state store"),
        (b'  File "/opt/soal/python/pyspark/ml/base.py", line 38, in <module>', "MLlib"),
        (b"Error while instantiating 'org.apache.spark.sql.hive.HiveSessionStateBuilder':", "Hive"),
        (b"Failed to find data source: avro. Avro is built-in but external", "the Avro format"),
        (
            b"Caused by: java.sql.SQLException: No suitable driver found for jdbc:postgresql://h/lake",
            "the drivers of PostgreSQL and MySQL",
        ),
        (
            b"Caused by: java.sql.SQLException: No suitable driver found for jdbc:db2://h/lake",
            "the database driver that an Iceberg catalog of the type jdbc needs",
        ),
        (
            b"py4j.protocol.Py4JJavaError: : java.sql.SQLException: No suitable driver",
            "the driver of this SQL database",
        ),
        (b"ModuleNotFoundError: No module named 'pandas'", "pandas, NumPy and PyArrow"),
        (b"ModuleNotFoundError: No module named 'numpy.linalg'", "pandas, NumPy and PyArrow"),
        (b"ModuleNotFoundError: No module named 'pandas_of_mine'", None),
        (
            b"Caused by: java.lang.NoClassDefFoundError: software/amazon/awssdk/services/glue/GlueClient",
            "the AWS clients in Java that Iceberg's Glue catalog and its S3FileIO need",
        ),
        (b"NoClassDefFoundError: software/amazon/awssdk/services/dynamodb/Any", "this AWS client in Java"),
        (b"org.apache.iceberg.jdbc.UncheckedSQLException: Failed to connect: jdbc:postgresql://h/lake", None),
        (b"java.lang.ClassNotFoundException: com.example.Mine", None),
        (b"org.rocksdb.Filter is a class", None),
    ],
)
def test_a_line_shows_what_a_job_missed(line: bytes, what: str | None) -> None:
    """By the class that was not found, or by a text that is named; anything else is not ours to explain."""
    watch = MissingWatch(read_missing(LIST))
    watch.look(line)
    assert (None if watch.seen is None else watch.seen.what) == what


def test_the_first_thing_that_is_missing_is_told() -> None:
    """What follows may be its consequence."""
    watch = MissingWatch((Missing("one", "do without", classes=("a.",)), Missing("two", "do without", signs=("two!",))))
    watch.look(b"java.lang.NoClassDefFoundError: a/B")
    watch.look(b"two!")
    assert watch.seen is not None
    assert watch.seen.sentence == (
        "the image does not have one: do without. A derived image can add it (image/derived)"
    )


def test_a_thing_of_the_other_variant_is_said_to_be_there() -> None:
    """One word away, and how to do without it."""
    (found,) = (row for row in read_missing(LIST) if row.what == "MLlib")
    assert found.sentence == (
        "the image does not have MLlib: its variant full does (soal image build --variant full, context key"
        " image_variant=full). Without it: train and predict with a Python package in a UDF"
    )
    assert found not in read_missing(LIST, "full")


@pytest.mark.parametrize(
    ("kind", "message", "words"),
    [
        ("ModuleNotFoundError", "No module named 'requests'", "imports requests, which neither"),
        ("ModuleNotFoundError", "No module named 'of_mine.part'", "imports of_mine.part, which neither"),
        (
            "AnalysisException",
            "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: hudi. Make sure the provider name is correct",
            "does not have the data source hudi: ",
        ),
        (
            "Py4JJavaError",
            "An error occurred while calling o9.load. : java.lang.ClassNotFoundException: com.example.Mine",
            "does not have the Java class com.example.Mine: ",
        ),
        ("Py4JJavaError", "java.lang.NoClassDefFoundError: com/example/Mine", "the Java class com.example.Mine: "),
    ],
)
def test_what_is_on_no_list_is_told_by_the_exception(kind: str, message: str, words: str) -> None:
    """In one sentence, with what to do."""
    told = not_found(kind, message)
    assert told is not None
    assert words in told
    assert "image/derived" in told


@pytest.mark.parametrize(
    ("kind", "message"), [("ValueError", "No module named 'x'"), ("ModuleNotFoundError", "a hook's own words")]
)
def test_another_exception_tells_of_nothing_missing(kind: str, message: str) -> None:
    """It is the script's own."""
    assert not_found(kind, message) is None


def test_every_entry_can_be_noticed_and_says_what_to_do() -> None:
    """It names classes or other signs, and its sentence reads as one."""
    for row in read_missing(LIST):
        assert row.classes or row.signs or row.modules, row.what
        assert all(name.endswith(".") for name in row.classes), row.what
        assert row.instead[0].islower(), row.what
        assert not row.instead.endswith("."), row.what
