from __future__ import annotations

from pathlib import Path

import pytest

from handler.spark.missing_dependencies import Missing, MissingWatch, read_missing

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
            "the database driver that an Iceberg catalog of the type jdbc needs",
        ),
        (b"py4j.protocol.Py4JJavaError: : java.sql.SQLException: No suitable driver", "drivers for SQL databases"),
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
    watch = MissingWatch(
        (Missing("one", (), ("a.",), (), "do without"), Missing("two", (), (), ("two!",), "do without"))
    )
    watch.look(b"java.lang.NoClassDefFoundError: a/B")
    watch.look(b"two!")
    assert watch.seen is not None
    assert watch.seen.sentence == (
        "the image does not have one: do without. A derived image can add it (image/derived)"
    )


def test_every_entry_can_be_noticed_and_says_what_to_do() -> None:
    """It names classes or other signs, and its sentence reads as one."""
    for row in read_missing(LIST):
        assert row.classes or row.signs, row.what
        assert all(name.endswith(".") for name in row.classes), row.what
        assert row.instead[0].islower(), row.what
        assert not row.instead.endswith("."), row.what
