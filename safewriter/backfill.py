"""A long write in parts: each is a block of its own, in order, and those that are committed are skipped.

for part in parts(spark, table, days("2025-01-01", "2025-12-31")):
    frame = spark.read.parquet(f"s3a://soal-data/day={part.value}")
    with part as sw:
        frame.write.format("delta").mode("append").save(sw.table)
        sw.success()
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from safewriter.block.block import Block
from safewriter.errors import FingerprintError, TooLateError, UsageError
from safewriter.pace import Pace
from safewriter.record import journal
from safewriter.record.document import Status
from safewriter.stable_text import stable_text
from safewriter.writer import SafeWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType

    from pyspark.sql import SparkSession

    from safewriter.record.document import Checkpoint

__all__ = ["Part", "days", "parts"]

T = TypeVar("T")

_READ_AT_ONCE: Final = 16
_READ_AHEAD: Final = 128
_SHOWN: Final = 200


@dataclass(slots=True)
class Part(Generic[T]):
    """One part: `with part as sw` is its guarded block, and `name` that block's step."""

    value: T
    name: str
    _make: Callable[[], SafeWriter]
    _writer: SafeWriter | None = field(default=None, init=False)

    def __enter__(self) -> SafeWriter:
        """Enter the block. Raises what `SafeWriter` raises."""
        self._writer = self._make()
        return self._writer.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """End the block."""
        return self._writer is not None and self._writer.__exit__(kind, error, trace)


def parts(
    spark: SparkSession,
    table: str,
    of: Iterable[T],
    *,
    format: str = "delta",  # noqa: A002 - the word of Spark's own API
    name: Callable[[T], str] = str,
    commit_point: Literal["write", "success"] = "write",
) -> Iterator[Part[T]]:
    """Yield a part for each value that no attempt of this run has committed yet, in their order.

    `name` gives a value's step: the same on each attempt, and another one for each value. A part that has committed no
    row is committed. The other arguments are those of `SafeWriter`. Raises `UsageError` if two values have the same
    name, or one has no name or no stable text, and `FingerprintError` if the run knows a part's name with another
    value: both before that part begins. Raises `TooLateError` if the next part would probably not end before the
    deadline: if there is less time than the median of the last five parts, also those of earlier attempts, and a fifth.
    Then the run is INCOMPLETE, and its next attempt continues there.
    """
    values, texts = _by_name(of, name)

    def block_of(step: str) -> Block:
        return Block.of(
            spark,
            table,
            format=format,
            step=step,
            commit_point=commit_point,
            checkpoint_bucket=None,
            warn_before_ms=None,
            turn=None,
            covers=texts[step],
        )

    def writer(step: str) -> SafeWriter:
        return SafeWriter.around(spark, block_of(step))

    pace, steps = Pace(), [*values]
    for number, block in _missing(steps, block_of, pace):
        step = steps[number]
        _check_time(pace, block, len(steps) - number)
        began = monotonic()
        yield Part(values[step], step, partial(writer, step))
        pace.took(monotonic() - began)


def days(first: date | str, last: date | str) -> tuple[date, ...]:
    """Return each day from the first to the last one, both included; a text is YYYY-MM-DD."""
    begin, end = (date.fromisoformat(day) if isinstance(day, str) else day for day in (first, last))
    return tuple(begin + timedelta(days=number) for number in range((end - begin).days + 1))


def _by_name(of: Iterable[T], name: Callable[[T], str]) -> tuple[dict[str, T], dict[str, str]]:
    """Return the values and their texts by the parts' names."""
    pairs: list[tuple[Any, T]] = [(name(value), value) for value in of]
    for text, value in pairs:
        if not isinstance(text, str) or not text or f" at {hex(id(value))}" in text:
            raise UsageError(f"{text!r} names no part: give name=, which returns the same text on each attempt")
    values = dict(pairs)
    if len(values) < len(pairs):
        ((double, _),) = Counter(text for text, _ in pairs).most_common(1)
        raise UsageError(f"two parts have the name {double!r}; a part's name is its step, so give each another one")
    return values, {text: _covered(text, value) for text, value in pairs}


def _covered(name: str, value: object) -> str:
    try:
        return stable_text(value)
    except ValueError as error:
        raise UsageError(
            f"part {name!r}: {error}, so a retry could not tell whether the part still covers the same. Give values of"
            " text, numbers, dates, or lists, dicts and dataclasses of them, and make frames of them inside the loop"
        ) from None


def _missing(steps: Sequence[str], block_of: Callable[[str], Block], pace: Pace) -> Iterator[tuple[int, Block]]:
    """Yield index and block of each part that is not committed; `pace` learns from the others. Documents are read in
    parallel, `_READ_AHEAD` at most ahead of the parts.
    """
    with ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        for begin in range(0, len(steps), _READ_AHEAD):
            some = steps[begin : begin + _READ_AHEAD]
            blocks = [block_of(step) for step in some]  # only this thread calls Java
            committed = [*pool.map(_committed, blocks)]
            pace.learn(document for document in committed if document is not None)
            yield from (
                (begin + place, block)
                for place, (block, document) in enumerate(zip(blocks, committed, strict=True))
                if document is None
            )


def _committed(block: Block) -> Checkpoint | None:
    """Return the part's document if the part is committed and not this delivery's, else None.

    Raises `FingerprintError` if the document is of another value or job.
    """
    stored = block.checkpoints.read(block.write.key)
    if stored is None:
        return None
    document, write = stored.document, block.write
    if document.fingerprint != write.fingerprint:
        raise FingerprintError(
            f"part {write.step!r} of {block.table}: run {write.run.key!r} has begun or committed it for another value"
            " than this one, or with another script, other arguments or another format, so its rows may be others."
            " Name each part by all that it covers, or use a new clientToken for other parts"
        )
    is_committed = document.status is Status.COMMITTED and write.run.delivery not in document.deliveries
    return document if is_committed else None


def _check_time(pace: Pace, block: Block, parts_left: int) -> None:
    """Raise `TooLateError` if the next part would not end in time."""
    schedule, wanted_s = block.schedule, pace.wanted_s
    if wanted_s is None or schedule is None:
        return
    left_s = schedule.left_ms(schedule.warn_at_ms) / 1000
    if left_s >= wanted_s:
        return
    if block.journal:
        with suppress(OSError):  # the error says it, too
            journal.append(
                block.journal,
                "too_late",
                nonce=block.attempt.nonce,
                part=(block.write.step or "")[:_SHOWN],
                partsLeft=parts_left,
                wantedS=round(wanted_s),
                leftS=round(max(0.0, left_s)),
            )
    raise TooLateError(
        f"part {block.write.step!r} is not begun: it takes about {wanted_s:.0f} s, and open writes are settled in"
        f" {max(0.0, left_s):.0f} s. The next attempt goes on here"
    )
