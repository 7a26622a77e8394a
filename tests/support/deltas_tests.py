"""Delta's own published Python tests (tests/vendored/delta), unchanged, on any session and on paths of an S3.

Delta's tests take session and path from a base class, and use files by `open`, `os.path`, `tempfile` and `shutil`. Here
they get another base class, and in their modules these four names reach objects of the S3.
"""

from __future__ import annotations

import importlib.util
import io
import os.path
import re
import sys
import types
import unittest
import uuid
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3

__all__ = ["PASSED", "VENDORED", "Outcome", "World", "deltas_tests"]

VENDORED: Final = Path(__file__).parents[1] / "vendored" / "delta"
PASSED: Final = "passed"
_FILES: Final = ("test_sql", "test_deltatable")
# Two of Delta's tests are indented into the end of another one, so Delta's own runner never calls them.
_HOLDER: Final = "test_optimize_zorder_by_w_partition_filter"
_DRAWN: Final = re.compile(
    r"[0-9a-f]{8}([-_])[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}|deletion_vector_.*(?=\.bin)"
)


@dataclass(frozen=True)
class Outcome:
    """How a test ended, its error if any, and the names of the objects that it left or dropped at its end."""

    result: str
    keys: tuple[str, ...]


@dataclass
class World:
    """The environment of one test: a session, and a prefix of the bucket for its paths and for its tables by name."""

    session: SparkSession
    s3: EmbeddedS3
    bucket: str
    prefix: str
    dropped: list[str] = field(default_factory=list)

    @property
    def root(self) -> str:
        return f"s3a://{self.bucket}/{self.prefix}"

    def keys(self) -> list[str]:
        return [self.told(key) for key in self.s3.keys(self.bucket, self.prefix)]

    def told(self, text: str) -> str:
        """A text without randomly drawn names."""
        return re.sub(r"-c000|part-\d{5}", "part", _DRAWN.sub("DRAWN", text.replace(self.prefix, "ROOT")))

    def run(self, test: str) -> Outcome:
        """Run one of `deltas_tests()`, with this world's database as the current one."""
        kind = deltas_tests()[test]
        case: Any = kind(test.partition(".")[2])
        case.spark, case.world = self.session, self
        self.session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")  # of a listing
        self.session.conf.set("spark.databricks.delta.snapshotPartitions", "1")
        database = f"deltas_{uuid.uuid4().hex}"
        self.session.sql(f"CREATE DATABASE {database} LOCATION '{self.root}/named'")
        self.session.sql(f"USE {database}")
        result = _Result(self)
        try:
            with _active(self.session), _files_of(self, sys.modules[kind.__module__]), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # ignore warnings of Delta's tests, which stay unchanged
                case.run(result)
            return Outcome(result.told, tuple(sorted([*self.keys(), *self.dropped])))
        finally:
            self.session.sql(f"DROP DATABASE {database} CASCADE")

    # -- replacements for the modules of files ------------------------------------------------------------------------

    def new_folder(self) -> str:
        return f"{self.root}/{uuid.uuid4()}"

    def exists(self, path: str) -> bool:
        key = self._key(path)
        return any(found == key or found.startswith(f"{key}/") for found in self.s3.keys(self.bucket, key))

    def open(self, path: str, mode: str = "r") -> io.StringIO:
        if mode == "w":
            return _Written(self, self._key(path))
        body = self.s3.observer().get_object(Bucket=self.bucket, Key=self._key(path))["Body"].read()
        return io.StringIO(body.decode())

    def _key(self, path: str) -> str:
        return path.removeprefix(f"s3a://{self.bucket}/")


class _Written(io.StringIO):
    """A new object, stored when the file is closed."""

    def __init__(self, world: World, key: str) -> None:
        super().__init__()
        self._world, self._object = world, key

    def close(self) -> None:
        if not self.closed:
            self._world.s3.fill(self._world.bucket, {self._object: self.getvalue().encode()})
        super().close()


class _Result(unittest.TestResult):
    """The result of one test, by the class and the first line of its error."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self.told = PASSED

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802 - unittest's name
        super().addSkip(test, reason)
        self.told = f"skipped: {reason}"

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802 - as above
        super().addError(test, err)
        self._tell(err[1])

    addFailure = addError  # noqa: N815 - as above

    def _tell(self, error: BaseException) -> None:
        # An error that Py4J did not convert to one of PySpark's begins with the Java object's number.
        text = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
        self.told = self._world.told(f"{type(error).__name__}: {text.partition(chr(10))[0]}")


class _DeltaTestCase(unittest.TestCase):
    """Replaces Delta's `delta.testing.utils.DeltaTestCase`, without a Spark context of its own."""

    spark: SparkSession
    world: World

    def setUp(self) -> None:
        self.tempPath = self.world.new_folder()
        self.tempFile = f"{self.tempPath}/tempFile"

    @contextmanager
    def table(self, *names: str) -> Iterator[None]:
        try:
            yield
        finally:
            self.world.dropped += self.world.keys()  # a table by name is deleted with its objects
            for name in names:
                self.spark.sql(f"DROP TABLE IF EXISTS {name}")

    @contextmanager
    def tempTable(self) -> Iterator[str]:  # noqa: N802 - Delta's name
        name = f"table_{str(uuid.uuid4()).replace('-', '_')}"
        with self.table(name):
            yield name


def deltas_tests() -> dict[str, type[unittest.TestCase]]:
    """Delta's tests by name, `Class.test`, each with its class."""
    if not _LOADED:
        for file in _FILES:
            module = _loaded(file)
            for kind in vars(module).values():
                if isinstance(kind, type) and issubclass(kind, _DeltaTestCase) and kind is not _DeltaTestCase:
                    _take_out(kind, module)
                    for test in unittest.defaultTestLoader.getTestCaseNames(kind):
                        _LOADED[f"{kind.__name__}.{test}"] = kind
    return _LOADED


_LOADED: Final[dict[str, type[unittest.TestCase]]] = {}


def _loaded(file: str) -> types.ModuleType:
    """Import a file of Delta's tests, with `_DeltaTestCase` in the place of Delta's base class."""
    name = f"deltas_{file}"
    spec = importlib.util.spec_from_file_location(name, VENDORED / f"{file}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    testing = {name: types.ModuleType(name) for name in ("delta.testing", "delta.testing.utils")}
    vars(testing["delta.testing.utils"])["DeltaTestCase"] = _DeltaTestCase
    sys.modules.update({name: module, **testing})
    try:
        spec.loader.exec_module(module)
    finally:
        for one in testing:
            del sys.modules[one]
    return module


def _take_out(kind: type, module: types.ModuleType) -> None:
    """Make the tests that are nested in another one tests of their class."""
    for constant in getattr(kind, _HOLDER).__code__.co_consts if hasattr(kind, _HOLDER) else ():
        if isinstance(constant, types.CodeType) and constant.co_name.startswith("test_"):
            setattr(kind, constant.co_name, types.FunctionType(constant, vars(module)))


@contextmanager
def _active(session: SparkSession) -> Iterator[None]:
    """Activate the session: some of Delta's calls use the active one, which PySpark and Java each keep."""
    java: Any = session.sparkContext._jvm.org.apache.spark.sql.SparkSession  # type: ignore[union-attr]
    before = java.getActiveSession()
    java.setActiveSession(session._jsparkSession)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(session), "_activeSession", session)
            yield
    finally:
        if before.isDefined():
            java.setActiveSession(before.get())
        else:
            java.clearActiveSession()


@contextmanager
def _files_of(world: World, module: types.ModuleType) -> Iterator[None]:
    """Make a module's file functions use objects of the S3; the objects that a test makes stay, to be compared."""
    path = types.SimpleNamespace(join=os.path.join, exists=world.exists)
    stand_ins = {
        "open": world.open,
        "os": types.SimpleNamespace(path=path),
        "shutil": types.SimpleNamespace(rmtree=lambda _: None),
        "tempfile": types.SimpleNamespace(mkdtemp=world.new_folder),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, stand_in in stand_ins.items():
            patch.setattr(module, name, stand_in, raising=False)
        yield
