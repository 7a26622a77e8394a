"""The one-line shortcut writes a frame in a guarded block, and computes nothing for a committed write."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter import shortcut

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class Block:
    """A block that records its arguments and calls."""

    made: tuple[Any, ...] = ()
    already_committed = False
    table = "s3a://lake/t"
    checkpoint: object = "the document"

    def __init__(self, spark: object, table: str, **options: Any) -> None:
        Block.made = (spark, table, options)
        self.done: list[str] = []
        Block.last = self

    last: Block

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.done.append("ended")

    def success(self) -> None:
        self.done.append("success")


class Writer:
    """A writer of a frame of the session "spark"."""

    _spark = "spark"

    def format(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(save=lambda path: Block.last.done.append(f"{name} to {path}"))


@pytest.fixture(autouse=True)
def block(monkeypatch: pytest.MonkeyPatch) -> type[Block]:
    monkeypatch.setattr(shortcut, "SafeWriter", Block)
    return Block


def test_a_line_is_a_block_with_its_write_and_success() -> None:
    """With the given step and commit point; it returns the document."""
    writer: Any = Writer()
    document: Any = shortcut.save(writer, "s3a://lake/t", step="daily", commit_point="success")
    assert document == "the document"
    assert Block.made == ("spark", "s3a://lake/t", {"step": "daily", "commit_point": "success"})
    assert Block.last.done == ["delta to s3a://lake/t", "success", "ended"]


def test_a_line_that_was_committed_before_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its frame is not even computed."""
    monkeypatch.setattr(Block, "already_committed", True)
    writer: Any = Writer()
    shortcut.save(writer, "s3a://lake/t")
    assert Block.made[2] == {"step": None, "commit_point": "write"}
    assert Block.last.done == ["success", "ended"]
