"""PySpark's examples, with arguments for those that require some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from handler.spark.installation import find_pyspark

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["MLLIB", "RESOURCES", "Example", "examples", "folder"]

MLLIB: Final = "data/mllib"
RESOURCES: Final = "examples/src/main/resources"
_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "avro_inputformat.py": (f"{RESOURCES}/users.avro",),
    "kmeans.py": (f"{MLLIB}/kmeans_data.txt", "2", "0.1"),
    "logistic_regression.py": (f"{MLLIB}/lr_data.txt", "10"),
    "ml/dataframe_example.py": (f"{{data}}/{MLLIB}/sample_libsvm_data.txt",),
    "mllib/gaussian_mixture_model.py": (f"{MLLIB}/kmeans_data.txt", "2"),
    "mllib/kmeans.py": (f"{MLLIB}/kmeans_data.txt", "2"),
    "mllib/logistic_regression.py": (f"{MLLIB}/sample_svm_data.txt", "10"),
    "mllib/streaming_linear_regression_example.py": (f"{MLLIB}/train", f"{MLLIB}/test"),
    "mllib/word2vec.py": (f"{MLLIB}/text8_lines",),
    "pagerank.py": (f"{MLLIB}/pagerank_data.txt", "10"),
    "parquet_inputformat.py": (f"{RESOURCES}/users.parquet",),
    "sort.py": (f"{RESOURCES}/numbers.txt",),
    "sql/streaming/structured_kafka_wordcount.py": ("127.0.0.1:9092", "subscribe", "topic"),
    "streaming/hdfs_wordcount.py": ("words",),
    "wordcount.py": (f"{RESOURCES}/people.txt",),
}
_A_SOCKET: Final = "a server that sends it words"
_NEEDS: Final[Mapping[str, str]] = {
    "sql/datasource.py": "a file that is younger than June 2050; the stock Spark ends there, too",
    **dict.fromkeys(
        (
            *(f"sql/streaming/structured_network_wordcount{end}.py" for end in ("", "_session_window", "_windowed")),
            "sql/streaming/structured_sessionization.py",
            *(f"streaming/{name}network_wordcount.py" for name in ("", "recoverable_", "sql_", "stateful_")),
            "streaming/network_wordjoinsentiments.py",
        ),
        _A_SOCKET,
    ),
}
# Spark writes files there that Python's own functions remove.
_LOCAL: Final = ("ml/dataframe_example.py",)
_ENDLESS: Final = ("streaming/hdfs_wordcount.py", "mllib/streaming_linear_regression_example.py")


@dataclass(frozen=True, slots=True)
class Example:
    """A script; `name` below the examples' folder.

    In its arguments `{data}` stands for the place of the files. `needs`: what it needs beside Spark and its data, if
    anything. `is_endless`: it runs until it is killed. `is_local`: a path without a scheme is local, not on S3.
    """

    name: str
    arguments: tuple[str, ...]
    needs: str | None
    is_endless: bool
    is_local: bool

    @property
    def can_run(self) -> bool:
        """Whether it can run here: anything but a server of words is available."""
        return self.needs != _A_SOCKET


def folder() -> Path:
    """Return the folder of the installed PySpark's examples. Raises `FileNotFoundError`."""
    pyspark = find_pyspark()
    found = None if pyspark is None else pyspark / "examples" / "src" / "main" / "python"
    if found is None or not found.is_dir():
        raise FileNotFoundError("PySpark's examples are not installed; run scripts/setup")
    return found


def examples() -> tuple[Example, ...]:
    """Return all examples, by name."""
    root = folder()
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py") if path.name != "__init__.py")
    return tuple(
        Example(name, _ARGUMENTS.get(name, ()), _NEEDS.get(name), name in _ENDLESS, name in _LOCAL) for name in names
    )
