from __future__ import annotations

import gc

import pytest

from safewriter.block.registry import Registry
from safewriter.errors import BlockOpenError, StepError
from safewriter.identity import Run, Write
from safewriter.objects import Location


class Session:
    """Anything that can be held weakly."""


def write(step: str | None = None, table: str = "t") -> Write:
    return Write(Run("run", "id"), Location("lake", table), "delta", step)


def test_one_block_at_a_time_is_open_on_a_session() -> None:
    """A second block is refused until the first has ended."""
    registry, session = Registry(), Session()
    registry.open(session, write("a"))

    with pytest.raises(BlockOpenError):
        registry.open(session, write("b"))
    registry.close(session, write("a"))

    registry.open(session, write("b"))


def test_another_session_may_have_a_block_of_its_own() -> None:
    """Sessions do not know of each other."""
    registry, one, other = Registry(), Session(), Session()
    registry.open(one, write("a"))

    registry.open(other, write("b"))


def test_a_name_is_open_once_in_a_process() -> None:
    """Two blocks at once on the same table and step cannot both be the run's write."""
    registry = Registry()
    registry.open(first := Session(), write())

    with pytest.raises(StepError, match="s3://lake/t"):
        registry.open(Session(), write())
    registry.open(Session(), write("second"))
    registry.close(first, write())

    registry.open(Session(), write())


def test_a_refused_block_leaves_no_trace() -> None:
    """After a refusal the session is still free."""
    registry, session = Registry(), Session()
    registry.open(Session(), write())
    with pytest.raises(StepError):
        registry.open(session, write())

    registry.open(session, write(table="other"))


def test_a_session_that_is_gone_is_forgotten() -> None:
    """The registry keeps no session alive."""
    registry, session = Registry(), Session()
    registry.open(session, write())

    del session
    gc.collect()

    assert len(registry._sessions) == 0
