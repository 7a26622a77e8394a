"""A build of a snapshot changes Spark settings and caches its input, and always restores both."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.write.options import cached, overridden


class Conf:
    """The settings of a session, and the calls to them."""

    def __init__(self, **settings: str) -> None:
        self.settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.asked: list[tuple[str, str | None]] = []
        self.broken: tuple[str, str | None] | None = None

    def isModifiable(self, name: str) -> bool:  # noqa: N802 - Spark's name
        return not name.startswith("static")

    def get(self, name: str, default: None) -> str | None:
        return self.settings.get(name)

    def set(self, name: str, value: str | None) -> None:
        self.asked.append((name, value))
        if (name, value) == self.broken:
            raise RuntimeError("no such value")
        if value is None:
            self.settings.pop(name, None)
        else:
            self.settings[name] = value

    def unset(self, name: str) -> None:
        self.set(name, None)


def session(conf: Conf) -> Any:
    return SimpleNamespace(conf=conf)


def test_settings_are_restored_in_reverse_order() -> None:
    """A setting that was not set is unset afterwards."""
    conf = Conf(a="1")
    with overridden(session(conf), {"a": "2", "b": "3", "c": "4"}):
        assert conf.settings == {"a": "2", "b": "3", "c": "4"}
    assert conf.settings == {"a": "1"}
    assert conf.asked[3:] == [("c", None), ("b", None), ("a", "1")]


def test_settings_are_restored_after_an_error() -> None:
    """The build's error propagates."""
    conf = Conf(a="1")
    with pytest.raises(KeyError), overridden(session(conf), {"a": "2"}):
        raise KeyError
    assert conf.settings == {"a": "1"}


def test_a_setting_that_cannot_be_restored_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """The error is logged, and does not change the build's outcome."""
    conf = Conf(a="1", b="1")
    with overridden(session(conf), {"a": "2", "b": "2"}):
        conf.broken = ("b", "1")
    assert conf.settings == {"a": "1", "b": "2"}
    assert "the Spark setting b could not be restored" in caplog.text


@pytest.mark.parametrize(
    ("name", "problem"), [("static.c", "cannot change static.c"), ("bad", "refuses a value for bad")]
)
def test_a_setting_that_cannot_be_is_refused(name: str, problem: str) -> None:
    """The error names it; settings before it are restored."""
    conf = Conf(a="1")
    conf.broken = ("bad", "2")
    with pytest.raises(ConfigValidationError, match=problem), overridden(session(conf), {"a": "2", name: "2"}):
        raise AssertionError
    assert conf.settings == {"a": "1"}


class Frame:
    def __init__(self, *, fails: str = "", used: bool = False) -> None:
        self.asked: list[str] = []
        self.storageLevel = SimpleNamespace(useMemory=False, useDisk=used)
        self._fails = fails

    def persist(self, *level: object) -> Frame:
        return self._ask(f"persist{level}")

    def unpersist(self, *, blocking: bool) -> Frame:
        return self._ask(f"unpersist blocking={blocking}")

    def _ask(self, what: str) -> Frame:
        self.asked.append(what)
        if self._fails and what.startswith(self._fails):
            raise RuntimeError(what)
        return self


def use(frame: Any, level: Any = None, *, cache: bool = True) -> None:
    with cached(frame, cache_input=cache, storage_level=level) as rows:
        assert rows is frame


def test_an_input_is_cached_while_the_build_runs() -> None:
    """The requested level is used; the release does not block."""
    frame, other = Frame(), Frame()
    use(frame)
    use(other, "disk")
    assert frame.asked == ["persist()", "unpersist blocking=False"]
    assert other.asked == ["persist('disk',)", "unpersist blocking=False"]


def test_a_cache_is_released_after_an_error() -> None:
    """The build's error propagates."""
    frame = Frame()
    with pytest.raises(KeyError), cached(frame, cache_input=True, storage_level=None):  # type: ignore[arg-type]
        raise KeyError
    assert frame.asked[-1] == "unpersist blocking=False"


@pytest.mark.parametrize("fails", ["persist", "unpersist"])
def test_a_cache_that_fails_does_not_fail_the_build(fails: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged; the build reads its input without a cache."""
    use(Frame(fails=fails))
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_cache_of_the_callers_stays() -> None:
    """It is used, and not released."""
    frame = Frame(used=True)
    use(frame)
    assert frame.asked == []


def test_a_level_without_a_cache_is_refused() -> None:
    """It would have no effect."""
    with pytest.raises(ConfigValidationError, match="give cache_input=True"):
        use(Frame(), "disk", cache=False)
