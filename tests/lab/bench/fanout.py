"""Lambda's fan-out: several processes append to one table at once, in each way in turn.

deltalake and pyiceberg count the appends in the table: independent of the writers.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import tempfile
import time
import uuid
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self
from unittest.mock import patch

from safewriter.objects.s3 import s3_client
from scripts.emulator.rest_catalog import RestCatalog
from scripts.tables.delta import view
from soal.testing.s3.embedded import EmbeddedS3
from soal.testing.s3.rules import Delay, Match, Rule
from tests.lab.bench.catalog import CATALOG, settings
from tests.lab.processes import Child, answers
from tests.support.iceberg_writer import IDS, open_catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["FORMATS", "FanoutRow", "Round", "Setting", "Writers", "measure", "row_of"]

FORMATS: Final = ("delta", "iceberg")
_LAKE: Final = "bench-lake"
_CHECKPOINTS: Final = "bench-checkpoints"
_WAREHOUSE: Final = f"s3a://{_LAKE}/w"
_WAYS: Final = {"delta": ("plain", "guarded", "default"), "iceberg": ("plain", "guarded")}
_DEFAULT_STORE: Final = {
    f"spark.delta.logStore.{scheme}.impl": "io.delta.storage.S3SingleDriverLogStore" for scheme in ("s3", "s3a")
}
"""Delta's own log store. SafeWriter refuses a session that has it, so these writers are separate processes."""
_APPENDER: Final = "tests.lab.bench.appender"


@dataclass(frozen=True, slots=True)
class FanoutRow:
    """`rounds` rounds in which each of `writers` processes appends one row to one table. Times are in seconds.

    `way`: `guarded`; `plain`, without SafeWriter but with the conditional log store; `default`, with Delta's own log
    store. S3 and a REST catalog delay each request by `latency_ms`. Of `sent` appends `failed` raised an error,
    `landed` are in the table, and `lost` are neither. `round_s` is the median of the rounds, `ratio` the median of
    their quotients by the plain rounds beside them. `landed_per_s`: landed appends by the time of all rounds.
    """

    format: str
    catalog: str
    way: str
    writers: int
    latency_ms: int
    rounds: int
    sent: int
    failed: int
    landed: int
    lost: int
    round_s: float
    ratio: float
    landed_per_s: float


@dataclass(frozen=True, slots=True)
class Setting:
    """What all ways of a set of rounds share; `latency_ms`: S3's delay for each request."""

    format: str
    catalog: str
    writers: int
    latency_ms: int


@dataclass(frozen=True, slots=True)
class Round:
    """One append of each process; the last was done after `seconds`, and `failed` of them reported an error."""

    seconds: float
    failed: int


def measure(
    formats: Sequence[str] = FORMATS,
    catalog: Literal["sqlite", "rest"] = "sqlite",
    writers: Sequence[int] = (2, 4, 8),
    rounds: int = 5,
    latency_ms: int = 30,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[FanoutRow, ...]:
    """Run `rounds` rounds of each way for each format and number of writers; `progress` gets the number done.

    Without a latency like Amazon S3's, commits rarely overlap, and the default log store loses almost none.
    """
    found: list[FanoutRow] = []
    done = itertools.count(1)
    for lake_format, count in itertools.product(formats, writers):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-bench-")))
            s3 = stack.enter_context(EmbeddedS3(buckets=(_LAKE, _CHECKPOINTS), unlistable=(_CHECKPOINTS,)))
            stack.enter_context(patch.dict(os.environ, s3.environment(), SW_CHECKPOINT_BUCKET=_CHECKPOINTS))
            tables: _Tables
            if lake_format == "delta":
                tables = _DeltaTables(s3.environment())
            else:
                rest = stack.enter_context(RestCatalog(s3, folder, _WAREHOUSE)) if catalog == "rest" else None
                tables = _IcebergTables(catalog, _where(folder, rest))
            processes = {
                log_store: stack.enter_context(Writers(count, settings, folder, lake_format, name=log_store))
                for log_store, settings in tables.settings.items()
            }
            if latency_ms:
                s3.wire.add(Rule(Match(), Delay(latency_ms), times=None))
            setting = Setting(lake_format, tables.catalog, count, latency_ms)
            found += _rounds(setting, tables, processes, rounds, lambda: progress(next(done)))
    return tuple(found)


def _rounds(
    setting: Setting, tables: _Tables, processes: Mapping[str, Writers], rounds: int, progress: Callable[[], None]
) -> list[FanoutRow]:
    """Run the rounds after an uncounted one: a session's first append takes several times as long."""
    ways = {way: processes["default" if way == "default" else "own"] for way in _WAYS[setting.format]}
    for way, writers in ways.items():
        writers.append_alone(_how(way), tables.name(way))  # creates the table, without a race
        writers.append(_how(way), tables.name(way))
    before = {way: tables.rows(way) for way in ways}
    taken: dict[str, list[Round]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, found in taken.items():
            began = time.monotonic()
            errors = ways[way].append(_how(way), tables.name(way))
            found.append(Round(time.monotonic() - began, len(errors)))
        progress()
    return [row_of(setting, way, tables.rows(way) - before[way], found, taken["plain"]) for way, found in taken.items()]


def row_of(setting: Setting, way: str, landed: int, taken: Sequence[Round], plain: Sequence[Round]) -> FanoutRow:
    """Return the figures of one way's rounds; `plain`: the plain rounds beside them."""
    sent, failed = setting.writers * len(taken), sum(one.failed for one in taken)
    return FanoutRow(
        format=setting.format,
        catalog=setting.catalog,
        way=way,
        writers=setting.writers,
        latency_ms=setting.latency_ms,
        rounds=len(taken),
        sent=sent,
        failed=failed,
        landed=landed,
        lost=sent - failed - landed,
        round_s=statistics.median(one.seconds for one in taken),
        ratio=statistics.median(two.seconds / one.seconds for one, two in zip(plain, taken, strict=True)),
        landed_per_s=landed / sum(one.seconds for one in taken),
    )


def _how(way: str) -> str:
    """Return how a writer appends: the default log store is a setting of its session."""
    return "guarded" if way == "guarded" else "plain"


class _DeltaTables:
    """A table for each way, created by its first append; `settings` holds the session settings by log store."""

    catalog = "-"
    settings: Final[Mapping[str, Mapping[str, str]]] = {"own": {}, "default": _DEFAULT_STORE}

    def __init__(self, aws: Mapping[str, str]) -> None:
        self._aws = aws
        self._client = s3_client()

    @staticmethod
    def name(way: str) -> str:
        return f"s3a://{_LAKE}/{way}"

    def rows(self, way: str) -> int:
        """Count with deltalake."""
        return view(self._client, _LAKE, way, self._aws).rows


class _IcebergTables:
    def __init__(self, catalog: str, where: Mapping[str, str]) -> None:
        self.catalog = catalog
        self.settings = {"own": settings(where)}
        self._catalog = open_catalog(CATALOG, where)
        for way in _WAYS["iceberg"]:
            self._catalog.create_table(f"db.{way}", IDS)

    @staticmethod
    def name(way: str) -> str:
        return f"{CATALOG}.db.{way}"

    def rows(self, way: str) -> int:
        """Count with pyiceberg."""
        snapshot = self._catalog.load_table(f"db.{way}").current_snapshot()
        if snapshot is None or snapshot.summary is None:
            return 0
        return int(snapshot.summary.get("total-records") or 0)


_Tables = _DeltaTables | _IcebergTables


def _where(folder: Path, rest: RestCatalog | None) -> dict[str, str]:
    """Return the properties of the catalog: a REST server, or a file."""
    if rest is not None:
        return {"type": "rest", "uri": rest.uri, "warehouse": _WAREHOUSE}
    own = {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/bench.db", "jdbc.schema-version": "V1"}
    return {**own, "warehouse": _WAREHOUSE}


class Writers(AbstractContextManager["Writers"]):
    """Processes with a Spark each, ready to append. Their logs are files in `folder`; `name` is the prefix of their
    names. `variables`: added to their environment.

    They end with the block, or with this process, even if it is killed.
    """

    def __init__(
        self,
        count: int,
        settings: Mapping[str, str],
        folder: Path,
        lake_format: str = "iceberg",
        *,
        name: str = "writer",
        variables: Mapping[str, str] | None = None,
    ) -> None:
        words = (lake_format, json.dumps(dict(settings)))
        self._stack = ExitStack()
        self._writers = [
            Child(
                _APPENDER,
                (f"{name}-{number}", *words),
                folder,
                variables={**(variables or {}), "SOAL_RUN_KEY": uuid.uuid4().hex},
            )
            for number in range(count)
        ]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for writer in self._writers:
                stack.push(writer)  # they have started together: end each, even if another one has failed
            answers(self._writers)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def append(self, way: str, table: str) -> list[str]:
        """Let each append one row at the same time, `plain` or `guarded`; return the errors."""
        for writer in self._writers:
            writer.ask(way=way, table=table)
        return [one["failed"] for one in answers(self._writers) if "failed" in one]

    def append_alone(self, way: str, table: str, number: int = 0) -> None:
        """Let one append one row, while the others wait. Raises `RuntimeError` if it fails."""
        self._writers[number].ask(way=way, table=table)
        if "failed" in (answer := self._writers[number].answer()):
            raise RuntimeError(f"an append alone to {table}: {answer['failed']}")
