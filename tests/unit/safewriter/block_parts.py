"""Session, watchdog, heartbeat and ending of a block, which record their calls."""

from __future__ import annotations

from typing import Any

from safewriter import SafeWriter


class Spark:
    """A Spark session, distinguished from others only by its identity."""


class Session:
    """A session that records its calls."""

    table = "s3a://lake/t"

    def __init__(self, done: list[str]) -> None:
        self._done = done

    def verify(self) -> None:
        self._done.append("verified")

    def restore(self) -> None:
        self._done.append("restored")

    def check_skipped(self) -> None:
        self._done.append("the skipped write is there")

    def is_outlived(self) -> bool:
        return False

    def was_skipped(self, error: BaseException) -> bool:
        return "our table" in str(error)


class Thread:
    """A watchdog or a heartbeat that records its arguments, and does nothing by itself."""

    done: list[str]

    def __init__(self, *arguments: Any) -> None:
        *self.bounds, self.act = arguments

    def start(self) -> None:
        bounds = [one() if callable(one) else one for one in self.bounds]
        self.done.append(f"{type(self).__name__} of {bounds}")
        self.act()

    def stop(self) -> None:
        self.done.append(f"{type(self).__name__} stopped")


class Watchdog(Thread):
    """The watchdog at the deadline."""


class Heartbeat(Thread):
    """The heartbeat that renews the lease."""


class Ending:
    """The end of a block, which records its calls."""

    succeeded = False
    document = "the document"

    def __init__(self, block: Any, checkpoint: object) -> None:
        self._done = block.done
        assert checkpoint == "checkpoint"

    def succeed(self, *, no_change: bool) -> None:
        self._done.append("succeeded")
        self.succeeded = True

    def fail(self, error: BaseException | None) -> None:
        self._done.append(f"failed: {error}")

    def at_deadline(self) -> None:
        self._done.append("deadline")

    def at_lost_turn(self) -> None:
        self._done.append("turn lost")

    def finish(self, *, files_stay: bool) -> None:
        self._done.append("finished" + ", files stay" * files_stay)

    def never_began(self) -> None:
        self._done.append("settled: it never began")


CLOSED = "write_closed journal nonce"


def guarded() -> SafeWriter:
    """A block on one table."""
    spark: Any = Spark()
    return SafeWriter(spark, "s3a://lake/t")
