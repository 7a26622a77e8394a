"""A block's clean-up after its verdict leaves failed work to a later settler, with a warning that names the write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.block.tidy import tidy
from safewriter.errors import UnknownOutcomeError
from safewriter.objects import StoreError
from tests.support.hygiene import wait_for_hygiene

if TYPE_CHECKING:
    from collections.abc import Callable


def failing(error: Exception) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize("error", [StoreError("denied"), UnknownOutcomeError("no end"), LookupError("gone")])
def test_what_cannot_be_cleaned_is_left_to_a_later_look(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """The verdict stands, so the job goes on; a warning names the write."""
    tidy("s3://checkpoints/a", failing(error))
    wait_for_hygiene()

    assert caplog.messages == [f"cleaning up after s3://checkpoints/a is left to a later settler: {error}"]


def test_an_error_of_our_own_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only errors of S3 and of tables are expected here."""
    seen: list[type[BaseException]] = []
    monkeypatch.setattr("threading.excepthook", lambda found: seen.append(found.exc_type))

    tidy("s3://checkpoints/a", failing(TypeError("a mistake")))
    wait_for_hygiene()

    assert seen == [TypeError]
