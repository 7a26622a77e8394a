"""The durable function runs calls of other threads on its main thread, and returns their results and errors."""

from __future__ import annotations

import threading

import pytest

from handler.durable.main_thread import MainThread


def test_what_another_thread_asks_for_is_done_by_the_one_that_serves() -> None:
    """This works repeatedly, and the result is returned."""
    main = MainThread()

    def act() -> list[threading.Thread]:
        assert threading.current_thread() is not here
        return [main.run(threading.current_thread), main.run(threading.current_thread)]

    here = threading.current_thread()
    assert main.serve(act) == [here, here]
    assert main.serve(lambda: 1) == 1


def test_an_error_goes_to_who_has_asked() -> None:
    """The serving thread continues."""
    main = MainThread()

    def fail() -> None:
        raise KeyError("asked")

    def act() -> str:
        with pytest.raises(KeyError, match="asked"):
            main.run(fail)
        return main.run(lambda: "went on")

    assert main.serve(act) == "went on"
    with pytest.raises(KeyError, match="asked"):
        main.serve(fail)
