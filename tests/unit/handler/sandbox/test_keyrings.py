from __future__ import annotations

import ctypes
import platform

import pytest

from handler.sandbox.keyrings import present, remove_all_but

USERS = -4
ADD_KEY = {"x86_64": 248, "aarch64": 217}


def add(name: bytes) -> int:
    """Add a key as a job can."""
    return int(ctypes.CDLL(None).syscall(ADD_KEY[platform.machine()], b"user", name, b"value", 5, USERS))


def test_a_key_that_came_since_is_removed_and_no_other() -> None:
    """A developer's own keys are there before the first job."""
    mine = add(b"soal-test-before")
    if mine < 0:
        pytest.skip("this kernel or container lets nobody have keys")
    try:
        before = present()
        assert (USERS, mine) in before
        left = add(b"soal-test-left")
        assert present() - before == {(USERS, left)}
        remove_all_but(before)
        assert present() == before
    finally:
        remove_all_but(present() - {(USERS, mine)})


def test_where_the_kernel_has_no_keyrings_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor on a machine whose call has another number."""
    monkeypatch.setattr(platform, "machine", lambda: "other")
    assert present() == frozenset()
