"""The driver keeps what a function of `foreachBatch` raised, for the error that tells of its stream's end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from handler.driver.batch_errors import behind, keep
from tests.support.java_errors import ended_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Context:
    """A session whose thread works on a batch of a stream; None: on none; an error: its JVM is gone."""

    def __init__(self, query: str | Exception | None) -> None:
        self.sparkContext, self._query = self, query

    def getLocalProperty(self, key: str) -> str | None:  # noqa: N802 - PySpark's name
        assert key == "sql.streaming.queryId"
        if isinstance(self._query, Exception):
            raise self._query
        return self._query


def on(query: str | Exception | None) -> SparkSession:
    return cast("SparkSession", Context(query))


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[str, Exception]:
    errors: dict[str, Exception] = {}
    monkeypatch.setattr("handler.driver.batch_errors._kept", errors)
    return errors


def test_each_stream_has_the_last_error_of_its_own_batches() -> None:
    """Streams run side by side, and begin again under the same id."""
    first, last, other = ValueError(), KeyError(), OSError()
    for error, query in ((first, "q"), (other, "r"), (last, "q")):
        keep(error, on(query))
    assert (behind(ended_stream("q")), behind(ended_stream("r"))) == (last, other)
    assert behind(ended_stream("s")) is None


@pytest.mark.parametrize(
    "error",
    [
        ended_stream("q", cause="java.io.IOException"),
        ended_stream("q", module="job"),
        KeyError("py4j.Py4JException"),
    ],
)
def test_another_error_has_none_behind_it(error: Exception) -> None:
    """A later start of the stream may fail without its function, and the script may have classes of the same name."""
    keep(ValueError(), on("q"))
    assert behind(error) is None


@pytest.mark.parametrize("origin", [None, object()])
def test_without_java_s_exception_nothing_is_known(origin: object) -> None:
    """The JVM may be gone."""
    keep(ValueError(), on("q"))
    error: Any = ended_stream("q")
    error._origin = origin
    assert behind(error) is None


@pytest.mark.parametrize("query", [None, ConnectionError()])
def test_an_error_outside_of_a_stream_is_not_kept(query: Exception | None, kept: dict[str, Exception]) -> None:
    """Nor is one whose stream the JVM can no longer tell."""
    keep(ValueError(), on(query))
    assert not kept


def test_only_some_errors_are_kept(kept: dict[str, Exception]) -> None:
    """Each holds the data frames of its batch: the oldest goes."""
    for number in (*range(8), 0, 8):
        keep(ValueError(number), on(f"q{number}"))
    assert [*kept] == ["q2", "q3", "q4", "q5", "q6", "q7", "q0", "q8"]
