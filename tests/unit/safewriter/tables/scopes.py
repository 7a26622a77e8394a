"""A Spark scope whose session is made of plain objects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from py4j.clientserver import ClientServer

from safewriter.tables.spark import SparkScope


class Streams(dict[str, Any]):
    """Java's map of the streams that run."""

    def isEmpty(self) -> bool:  # noqa: N802 - Java's name
        return not self


class Properties(dict[str, Any]):
    """Java's properties of the thread that has asked for them; any thread may change them."""

    getProperty = dict.get  # noqa: N815 - Java's names
    setProperty = dict.__setitem__  # noqa: N815
    remove = dict.pop


def scope(properties: dict[str, str], streams: dict[str, Any], gateway: Any = None) -> SparkScope:
    context = SimpleNamespace(getLocalProperty=properties.get, _gateway=gateway or object.__new__(ClientServer))
    shared = SimpleNamespace(activeStreamingQueries=lambda: Streams(streams))
    spark = SimpleNamespace(getLocalProperties=lambda: properties)
    java = SimpleNamespace(sharedState=lambda: shared, sparkContext=lambda: spark)
    session: Any = SimpleNamespace(_jvm=object(), version="4.1.4", sparkContext=context, _jsparkSession=java)
    found = SparkScope(session, "s3a://lake/t")
    found.java_class = lambda _: SimpleNamespace(fromString=str)  # type: ignore[assignment,method-assign]
    return found
