"""SafeWriter's registry of open blocks allows one block per session, and one per table and step in a process."""

from __future__ import annotations

import gc

import pytest

from safewriter.errors import BlockOpenError, StepError
from safewriter.identity import Run, Write
from safewriter.objects import Location
from safewriter.writer import OpenBlocks


class Session:
    """Anything that can be held weakly."""


def write(step: str | None = None, table: str = "t") -> Write:
    return Write(Run("run", "id"), Location("lake", table), "delta", step)


def test_one_block_at_a_time_is_open_on_a_session() -> None:
    """A second block is refused until the first has ended."""
    blocks, session = OpenBlocks(), Session()
    blocks.open(session, write("a"))

    with pytest.raises(BlockOpenError):
        blocks.open(session, write("b"))
    blocks.close(session, write("a"))

    blocks.open(session, write("b"))


def test_another_session_may_have_a_block_of_its_own() -> None:
    """Sessions do not know of each other."""
    blocks, one, other = OpenBlocks(), Session(), Session()
    blocks.open(one, write("a"))

    blocks.open(other, write("b"))


def test_a_name_is_open_once_in_a_process() -> None:
    """Two simultaneous blocks on the same table and step cannot both be the run's write."""
    blocks = OpenBlocks()
    blocks.open(first := Session(), write())

    with pytest.raises(StepError, match="s3://lake/t"):
        blocks.open(Session(), write())
    blocks.open(Session(), write("second"))
    blocks.close(first, write())

    blocks.open(Session(), write())


def test_a_refused_block_leaves_no_trace() -> None:
    """After a refusal the session is still free."""
    blocks, session = OpenBlocks(), Session()
    blocks.open(Session(), write())
    with pytest.raises(StepError):
        blocks.open(session, write())

    blocks.open(session, write(table="other"))


@pytest.mark.slow
def test_a_session_that_is_gone_is_forgotten() -> None:
    """The registry keeps no session alive."""
    blocks, session = OpenBlocks(), Session()
    blocks.open(session, write())

    del session
    gc.collect()

    assert len(blocks._sessions) == 0
